#include "orchestrator/scheduler/sharing/loan_estimate.hpp"

#include "tests/support/times.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

/// One loan of `there` seconds, with 10 s of transit either way. Returns its end.
double loan(LoanEstimate& lending, double begin, double there) {
  lending.leaves(at(begin));
  lending.arrives(at(begin + 10));
  lending.recalled(at(begin + 10 + there));
  lending.returns(at(begin + 20 + there));
  return begin + 20 + there;
}

/// Two fixed engines and two lent ones, which halve the time; a window of 100 responses.
LoanEstimate lending() {
  LoanEstimate l(2, 2, 100);
  l.generated(1, at(0));
  l.generated(100, at(100));  // One second each.
  return l;
}

TEST(LoanEstimate, PaysWhenTheTimeSavedExceedsTheMeanCost) {
  LoanEstimate l = lending();
  loan(l, 100, 1000);
  EXPECT_DOUBLE_EQ(*l.per_response(), 1);
  EXPECT_DOUBLE_EQ(*l.mean_cost(), 20);
  // 41 responses x 1 s x (1 - 1/2) = 20.5 s > 20 s.
  EXPECT_TRUE(l.pays(41));
  EXPECT_FALSE(l.pays(40));
  EXPECT_FALSE(l.pays(0));
}

TEST(LoanEstimate, TriesOnceBeforeItKnowsTheCost) {
  EXPECT_TRUE(lending().pays(1));
  EXPECT_FALSE(lending().pays(0));
}

TEST(LoanEstimate, IdleLoansRaiseTheMarginAndCalmOnesLowerIt) {
  LoanEstimate l = lending();
  double t = loan(l, 100, 5);
  EXPECT_DOUBLE_EQ(l.margin(), 0);
  t = loan(l, t, 5);
  EXPECT_DOUBLE_EQ(l.margin(), 0.05) << "two idle ones";
  EXPECT_FALSE(l.pays(41)) << "20.5 s do not exceed 1.05 x 20 s";
  t = loan(l, t, 100);
  loan(l, t, 100);
  EXPECT_NEAR(l.margin(), 0.02, 1e-12) << "two calm ones";
}

TEST(LoanEstimate, TheLastThreeLoansCount) {
  LoanEstimate l = lending();
  double t = 100;
  for (const double there : {1000.0, 30.0, 30.0, 30.0})
    t = loan(l, t, there);
  EXPECT_DOUBLE_EQ(*l.mean_cost(), 20);
}

}  // namespace
}  // namespace temper::orchestrator
