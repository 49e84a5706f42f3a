#include "core/random.hpp"
#include "orchestrator/scheduler/staleness/exact.hpp"
#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

PolicyVersion v(std::uint64_t n) {
  return PolicyVersion(n);
}

/// One response to a group, no reference: a group is trainable once it is generated and judged.
class Policy : public ::testing::Test {
 protected:
  void begin(double bound, std::int32_t batch) {
    standing.bound = bound;
    standing.batch = batch;
    queue = DistQueue(false, 1, 1000);
  }
  GroupId dispatch(std::uint64_t version) {
    const GroupId id(next_++);
    queue.add_group(id, v(version));
    standing.add(v(version));
    return id;
  }
  void finish(GroupId id) {
    const ResponseId r(id.value());
    queue.commit(queue.lease(Task::Generate, ActorId(0), {r}, Time{}), r, Field::Response);
    queue.commit_reward(queue.lease(Task::Reward, ActorId(1), {r}, Time{}), r, 1.0);
  }
  void train(const std::vector<GroupId>& groups) {
    for (const GroupId id : groups) {
      standing.remove(queue.group(id)->dispatched, OutstandingGroups::Left::Trained);
      queue.remove_group(id);
    }
    standing.publish(next(standing.step));
  }
  std::vector<GroupId> select(const StalenessRule& policy) {
    return policy.select(queue, standing).value_or(std::vector<GroupId>());
  }
  bool admits(const StalenessRule& policy, std::uint64_t version) {
    return policy.admits(v(version), queue, standing);
  }
  using Groups = std::vector<GroupId>;

  OutstandingGroups standing;
  DistQueue queue;

 private:
  std::uint64_t next_ = 0;
};

TEST_F(Policy, ExactAdmitsOneBatchPerStepUntilTheDeadline) {
  // eta 1, B 2, at step 0: deadline 1 leaves room for (1 - 0 + 1) * 2 = 4 groups.
  begin(1, 2);
  const ExactRule exact;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(admits(exact, 0));
    dispatch(0);
  }
  EXPECT_FALSE(admits(exact, 0));
}

TEST_F(Policy, ExactWithoutStalenessAdmitsOneBatchAndOnlyUnderTheNewestVersion) {
  begin(0, 1);
  const ExactRule exact;
  standing.publish(v(3));
  EXPECT_TRUE(admits(exact, 3));
  EXPECT_FALSE(admits(exact, 2));  // its deadline 2 has passed
  dispatch(3);
  EXPECT_FALSE(admits(exact, 3));
}

TEST_F(Policy, ExactWaitsOnlyForTheGroupsThatBreakIt) {
  // eta 1, B 1: outstanding with deadlines 1 and 2, at step 1. Training the one of 2 would leave
  // the other past its deadline at step 2: room (1 - 2 + 1) * 1 = 0.
  begin(1, 1);
  const ExactRule exact;
  dispatch(0);
  dispatch(1);
  standing.publish(v(1));
  EXPECT_FALSE(exact.may_train({{v(1), 1}}, standing));
  EXPECT_EQ(exact.binding_version({{v(1), 1}}, standing), v(0));
  EXPECT_TRUE(exact.may_train({{v(0), 1}}, standing));
}

TEST_F(Policy, ExactDoesNotCountOnAnUpdateThatIsUnderWay) {
  // eta 2, B 2, step 2 trains groups with deadlines 2 and 3. An engine that still holds version 0
  // asks: deadline 2. Counted by their own deadlines, N(<= 2) = 2 would fit into (2 - 2 + 1) * 2;
  // but the batch of step 2 is made, and step 3 is too late.
  begin(2, 2);
  const ExactRule exact;
  dispatch(0);
  dispatch(1);
  standing.publish(v(2));
  ASSERT_TRUE(admits(exact, 0));
  standing.in_training = {{v(0), 1}, {v(1), 1}};
  EXPECT_FALSE(admits(exact, 0));
  EXPECT_TRUE(admits(exact, 1));  // deadline 3: N = 2 + 1 <= 4
  standing.remove(v(0), OutstandingGroups::Left::Trained);
  standing.remove(v(1), OutstandingGroups::Left::Trained);
  standing.publish(v(3));
  EXPECT_TRUE(admits(exact, 1));
}

TEST_F(Policy, AggregateLetsAStragglerBeOvertaken) {
  begin(1, 1);
  const auto aggregate = make_staleness_rule(StalenessRuleKind::Aggregate);
  const GroupId straggler = dispatch(0);
  for (std::uint64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(admits(*aggregate, step)) << "one ahead, as eta 1 allows";
    const GroupId quick = dispatch(step);
    ASSERT_FALSE(admits(*aggregate, step));
    finish(quick);
    ASSERT_EQ(select(*aggregate), Groups{quick});
    train({quick});
  }
  finish(straggler);
  EXPECT_EQ(select(*aggregate), Groups{straggler}) << "five versions old";
  EXPECT_FALSE(aggregate->guarantee(standing));
}

TEST_F(Policy, AggregateAndCountTakeFractions) {
  begin(0.5, 4);
  for (const StalenessRuleKind rule : {StalenessRuleKind::Aggregate, StalenessRuleKind::Count}) {
    begin(0.5, 4);
    standing = OutstandingGroups();
    standing.batch = 4;
    standing.bound = 0.5;
    const auto policy = make_staleness_rule(rule);
    int admitted = 0;
    while (admits(*policy, 0)) {
      dispatch(0);
      ++admitted;
    }
    EXPECT_EQ(admitted, 6) << name_of(rule);
  }
}

TEST_F(Policy, CountStopsUntilTheNextPublication) {
  // (1 + 1) x 2 = 4 per interval, those left over from the last one included.
  begin(1, 2);
  const auto count = make_staleness_rule(StalenessRuleKind::Count);
  Groups all;
  for (int i = 0; i < 4; ++i)
    all.push_back(dispatch(0));
  EXPECT_FALSE(admits(*count, 0));
  finish(all[0]);
  finish(all[1]);
  train(select(*count));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(admits(*count, 1));
    dispatch(1);
  }
  EXPECT_FALSE(admits(*count, 1));
}

TEST_F(Policy, DropEvictsFinishedGroupsAndRefills) {
  begin(2, 1);
  const auto drop = make_staleness_rule(StalenessRuleKind::Drop);
  const GroupId old = dispatch(0);
  const GroupId running = dispatch(0);
  finish(old);
  standing.publish(v(1));
  EXPECT_TRUE(drop->evict(queue, standing).empty()) << "1 - 0 + 1 is not above 2";
  standing.publish(v(2));
  EXPECT_EQ(drop->evict(queue, standing), Groups{old}) << "the other has not finished";
  standing.remove(v(0), OutstandingGroups::Left::GivenUp);
  queue.remove_group(old);
  EXPECT_TRUE(admits(*drop, 2));
  finish(running);
  EXPECT_EQ(drop->evict(queue, standing), Groups{running});
  EXPECT_EQ(drop->guarantee(standing), 1U);
}

TEST_F(Policy, WaitDispatchesNothingWhileAGroupInFlightIsAtTheBound) {
  begin(1, 1);
  const auto wait = make_staleness_rule(StalenessRuleKind::Wait);
  const GroupId slow = dispatch(0);
  EXPECT_TRUE(admits(*wait, 0));
  standing.publish(v(1));
  EXPECT_FALSE(admits(*wait, 1));
  finish(slow);
  EXPECT_TRUE(admits(*wait, 1));
}

TEST_F(Policy, WindowAbortsWhatIsOlderEvenWhileItGenerates) {
  begin(1, 1);
  const auto window = make_staleness_rule(StalenessRuleKind::Window);
  const GroupId running = dispatch(0);
  const GroupId finished = dispatch(0);
  const GroupId young = dispatch(1);
  finish(finished);
  standing.publish(v(1));
  EXPECT_TRUE(window->evict(queue, standing).empty());
  standing.publish(v(2));
  EXPECT_EQ(window->evict(queue, standing), (Groups{running, finished}));
  EXPECT_NE(young, running);
}

TEST_F(Policy, InOrderWaitsForTheFirstAndKeepsTheBound) {
  begin(1, 1);
  const auto in_order = make_staleness_rule(StalenessRuleKind::InOrder);
  const GroupId slow = dispatch(0);
  const GroupId quick = dispatch(0);
  EXPECT_FALSE(admits(*in_order, 0)) << "(0 + 1 + 1) x 1 are dispatched";
  finish(quick);
  EXPECT_TRUE(select(*in_order).empty());
  finish(slow);
  EXPECT_EQ(select(*in_order), Groups{slow});
  train({slow});
  EXPECT_EQ(select(*in_order), Groups{quick});
}

/// (I), with promised groups counted at step t, at every deadline one by one.
bool holds(const OutstandingGroups& s, const std::vector<std::uint64_t>& promised) {
  const auto eta = static_cast<std::uint64_t>(s.bound);
  for (std::uint64_t d = s.step.value(); d <= s.step.value() + 2 * eta + 2; ++d) {
    std::int64_t count = 0;
    for (const auto& [v0, groups] : s.outstanding)
      count += v0.value() + eta <= d ? groups : 0;
    for (const std::uint64_t v0 : promised)
      count += v0 + eta > d ? 1 : 0;
    if (count > static_cast<std::int64_t>(d - s.step.value() + 1) * s.batch)
      return false;
  }
  return static_cast<std::int64_t>(promised.size()) <= s.batch;
}

TEST(Promise, AsManyOfTheOldestAsLeaveRoomForAllThatTheUpdateCannotDoWithout) {
  int some = 0, fewer = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed, "promise");
    OutstandingGroups s;
    s.batch = static_cast<std::int32_t>(1 + random.below(5));
    const std::uint64_t eta = random.below(4);
    s.bound = static_cast<double>(eta);
    s.step = v(eta + random.below(3));
    std::vector<std::uint64_t> ready, all;
    for (std::uint64_t i = random.below(20); i > 0; --i) {
      const std::uint64_t v0 = s.step.value() - random.below(eta + 1);
      s.add(v(v0));
      if (!holds(s, {}))
        s.remove(v(v0), OutstandingGroups::Left::GivenUp);
      else
        all.push_back(v0);
    }
    GroupsByVersion by_version;
    for (const std::uint64_t v0 : all) {
      if (random.chance(0.6)) {
        ready.push_back(v0);
        ++by_version[v(v0)];
      }
    }
    std::ranges::sort(ready);
    std::int64_t most = 0;
    std::vector<std::uint64_t> promised;
    for (const std::uint64_t v0 : ready) {
      promised.push_back(v0);
      if (!holds(s, promised) || std::ssize(promised) > s.batch - 1)
        break;
      ++most;
    }
    ASSERT_EQ(ExactRule().may_promise(by_version, s), most) << "seed " << seed;
    some += most > 0 ? 1 : 0;
    fewer += most < std::min<std::int64_t>(std::ssize(ready), s.batch - 1) ? 1 : 0;
  }
  EXPECT_GT(some, 1000);
  EXPECT_GT(fewer, 100) << "the bound sometimes forbids it";
}

TEST(Promise, OtherRulesPromiseNothing) {
  OutstandingGroups s;
  s.batch = 4;
  s.bound = 2;
  s.add(v(0));
  for (const auto& [rule, name] : EnumNames<StalenessRuleKind>::value) {
    if (rule == StalenessRuleKind::Exact || rule == StalenessRuleKind::Sync)
      continue;
    EXPECT_EQ(make_staleness_rule(rule)->may_promise({{v(0), 1}}, s), 0) << name;
  }
}

}  // namespace
}  // namespace temper::orchestrator
