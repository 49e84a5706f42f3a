#include "study/search/closed_form_correction.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::study {
namespace {

TEST(ClosedFormCorrection, IsOneWithoutRuns) {
  EXPECT_EQ(ClosedFormCorrection().factor({0, 1}), 1);
}

TEST(ClosedFormCorrection, IsTheMeanOfItsRunsWithHalfARunOfAgreement) {
  ClosedFormCorrection correction;
  correction.add({0, 1}, 10, 20);
  EXPECT_DOUBLE_EQ(correction.factor({0, 1}), std::pow(2, 1 / 1.5));
  correction.add({0, 1}, 10, 5);  // twice and half cancel
  EXPECT_DOUBLE_EQ(correction.factor({0, 1}), 1);
}

TEST(ClosedFormCorrection, RegionsAreIndependent) {
  ClosedFormCorrection correction;
  correction.add({0, 1}, 10, 20);
  EXPECT_EQ(correction.factor({0, 2}), 1);
  EXPECT_EQ(correction.factor({1, 1}), 1);
}

}  // namespace
}  // namespace temper::study
