#include "orchestrator/scheduler/staleness.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

PolicyVersion v(std::uint64_t n) {
  return PolicyVersion(n);
}

TEST(ExactRule, AdmitsOneBatchPerStepUntilTheDeadline) {
  // eta 1, B 2, at step 0: deadline 1 leaves room for (1 - 0 + 1) * 2 = 4 groups.
  ExactRule rule(1, 2);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(rule.admits(v(0), v(0)));
    rule.add(v(1));
  }
  EXPECT_FALSE(rule.admits(v(0), v(0)));
}

TEST(ExactRule, WithoutStalenessAdmitsOneBatchAndOnlyUnderTheNewestVersion) {
  ExactRule rule(0, 1);
  EXPECT_TRUE(rule.admits(v(3), v(3)));
  EXPECT_FALSE(rule.admits(v(2), v(3)));  // its deadline 2 has passed
  rule.add(v(3));
  EXPECT_FALSE(rule.admits(v(3), v(3)));
}

TEST(ExactRule, WaitsOnlyForTheGroupsThatBreakIt) {
  // eta 1, B 1: outstanding with deadlines 1 and 2, at step 1. Training the one of 2 would leave
  // the other past its deadline at step 2: room (1 - 2 + 1) * 1 = 0.
  ExactRule rule(1, 1);
  rule.add(v(1));
  rule.add(v(2));
  const std::vector<PolicyVersion> later{v(2)}, earlier{v(1)};
  EXPECT_FALSE(rule.may_train(later, v(1)));
  EXPECT_EQ(rule.binding_deadline(later, v(1)), v(1));
  EXPECT_TRUE(rule.may_train(earlier, v(1)));
}

TEST(ExactRule, AGroupAdmittedDuringAnUpdateCannotCountOnThatUpdate) {
  // eta 2, B 2, step 2 trains groups with deadlines 2 and 3. An engine that still holds version 0
  // asks: deadline 2. Counted by their own deadlines, N(<= 2) = 2 would fit into (2 - 2 + 1) * 2;
  // but the batch of step 2 is made, and step 3 is too late.
  ExactRule rule(2, 2);
  rule.add(v(2));
  rule.add(v(3));
  ASSERT_TRUE(rule.admits(v(0), v(2)));
  rule.begin_update({v(2), v(3)});
  EXPECT_FALSE(rule.admits(v(0), v(2)));
  EXPECT_TRUE(rule.admits(v(1), v(2)));  // deadline 3: N = 2 + 1 <= 4
  rule.end_update();
  rule.remove(v(2));
  rule.remove(v(3));
  EXPECT_TRUE(rule.admits(v(1), v(3)));
}

}  // namespace
}  // namespace temper::orchestrator
