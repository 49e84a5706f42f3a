#include "orchestrator/metrics/batch_tail.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/metrics/timeline_feed.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::CardState;
using actors::FinishReason;

/// rollout-0 on card 0, trainer-0 and reward-0 on card 1. A batch has 20 responses, of ten groups:
/// the last two are its tail. The lease of a response is 100 more than its number.
class TailFeed {
 public:
  TailFeed() : feed_(config()) { says(0, WaitKind::Groups); }

  void says(std::int64_t ns, WaitKind kind) {
    feed_.wait(ns, kTrainer, CardState::WaitData, {kind});
  }
  void dispatch(std::int64_t ns, std::uint64_t first, std::uint64_t last, std::uint64_t lease = 0) {
    Commands commands;
    for (std::uint64_t r = first; r < last; ++r) {
      commands.push_back(command::Dispatch{
          kRollout, LeaseId(100 + r + lease), GroupId(r / 2), {}, {ResponseId(r)}, {}});
    }
    feed_.event(ns, event::DeadlineReached{}, std::move(commands));
  }
  void ends(std::int64_t ns,
            std::uint64_t first,
            std::uint64_t last,
            FinishReason how = FinishReason::End) {
    event::Generated e{kRollout, {}};
    for (std::uint64_t r = first; r < last; ++r)
      e.items.push_back({LeaseId(100 + r), ResponseId(r), {}, {}, {}, how});
    feed_.event(ns, std::move(e));
  }
  void event(std::int64_t ns, Event e, Commands commands = {}) {
    feed_.event(ns, std::move(e), std::move(commands));
  }
  std::int64_t tail(std::int64_t until) const {
    return feed_.timeline.tail().total(at_ns(until)).count();
  }
  /// Card time of waits for this, in the tail of a batch or not.
  std::int64_t waited(WaitKind kind, bool tail, std::int64_t until) const {
    std::int64_t sum = 0;
    for (const WaitTotal& w : feed_.timeline.waits(at_ns(until)))
      sum += w.reason.cause.kind == kind && w.reason.tail == tail ? w.card_time.count() : 0;
    return sum;
  }
  /// Card time of prefill and decode in tails.
  std::int64_t generating(std::int64_t until) const {
    return feed_.timeline.generating_in_tails(at_ns(until)).count();
  }
  TimelineFeed& timeline() { return feed_; }

 private:
  static SchedulerConfig config() {
    SchedulerConfig c = two_cards();
    c.responses_per_group = 2;
    c.groups_per_update = 10;
    return c;
  }
  TimelineFeed feed_;
};

TEST(BatchTail, LastsFromTheLastTenthOfABatchToItsEnd) {
  TailFeed f;
  f.dispatch(0, 0, 20);
  f.ends(100, 0, 17);
  EXPECT_EQ(f.tail(200), 0) << "three of 20 are more than a tenth";
  f.ends(200, 17, 18);
  EXPECT_EQ(f.tail(230), 30);
  f.ends(250, 18, 20);
  EXPECT_EQ(f.tail(300), 50);
}

TEST(BatchTail, EndsWhileAResponseWaitsForAnEngine) {
  TailFeed f;
  f.dispatch(0, 0, 2);
  f.ends(100, 1, 2, FinishReason::Interrupted);
  EXPECT_EQ(f.tail(150), 100);
  f.dispatch(150, 1, 2);
  EXPECT_EQ(f.tail(200), 150);
  f.event(200, event::ActorDown{kRollout, "lost"});
  EXPECT_EQ(f.tail(300), 150);
}

TEST(BatchTail, EndsWhileAResponseThatLostItsTensorsWaitsForAnEngine) {
  TailFeed f;
  f.dispatch(0, 0, 2);
  f.ends(100, 1, 2);
  f.event(130, event::TensorsLost{LeaseId(3), {ResponseId(1)}});
  EXPECT_EQ(f.tail(150), 130);
  f.dispatch(150, 1, 2);
  EXPECT_EQ(f.tail(200), 180);
}

TEST(BatchTail, NeedsATrainerThatLacksGroups) {
  TailFeed f;
  f.dispatch(0, 0, 1);
  f.says(10, WaitKind::Work);  // It prepares others.
  EXPECT_EQ(f.tail(20), 20);
  f.says(30, WaitKind::Dispatch);
  EXPECT_EQ(f.tail(40), 30);
  f.says(50, WaitKind::Groups);
  EXPECT_EQ(f.tail(60), 40);
  f.event(70, event::DeadlineReached{}, {command::Train{kTrainer, LeaseId(1), {}, {}}});
  f.says(70, WaitKind::Work);
  EXPECT_EQ(f.tail(100), 50);
}

TEST(BatchTail, KnowsNoResponseOfAnEvaluationAndNoLateOne) {
  TailFeed f;
  f.dispatch(0, 0, 1, kFirstEvaluation);
  EXPECT_EQ(f.tail(100), 0);
  f.dispatch(100, 2, 3, 7);
  f.ends(150, 2, 3);  // Under a lease that it does not have.
  EXPECT_EQ(f.tail(200), 100);
}

TEST(BatchTail, ForgetsAGroupThatLeaves) {
  TailFeed f;
  f.dispatch(0, 0, 2);
  f.event(40, event::DeadlineReached{}, {command::Release{GroupId(0), Outcome::Evicted}});
  EXPECT_EQ(f.tail(100), 40);
}

TEST(BatchTail, AfterAResumeCountsFromTheNextStepOn) {
  TailFeed f;
  f.event(0, event::Resumed{});
  f.says(0, WaitKind::Groups);
  f.dispatch(0, 0, 1);
  EXPECT_EQ(f.tail(100), 0);
  f.event(100, event::Trained{});
  EXPECT_EQ(f.tail(150), 50);
}

TEST(BatchTail, IsTheCauseOfWaitsThatEndWithIt) {
  TailFeed f;
  f.timeline().wait(0, kReward, CardState::WaitData, {WaitKind::Responses});
  f.timeline().wait(0, kRollout, CardState::Idle, {WaitKind::Work});
  f.dispatch(0, 0, 20);
  f.ends(100, 0, 18);
  f.ends(300, 18, 20);
  f.timeline().wait(300, kRollout, CardState::WaitQuota, {WaitKind::StalenessBound});
  EXPECT_EQ(f.waited(WaitKind::Groups, false, 400), 100 + 100);
  EXPECT_EQ(f.waited(WaitKind::Groups, true, 400), 200);
  EXPECT_EQ(f.waited(WaitKind::StalenessBound, false, 400), 100);
  EXPECT_EQ(f.timeline().ns(1, CardState::WaitData, 400), 400) << "the state is the same";
}

TEST(BatchTail, HasTheTimeOfEnginesThatDecodeInIt) {
  TailFeed f;
  f.dispatch(0, 0, 20);
  f.ends(100, 0, 18);
  f.timeline().busy(150, kRollout, {{CardState::Decode, at_ns(20), at_ns(120)}});
  f.ends(300, 18, 20);
  f.timeline().busy(350,
                    kRollout,
                    {{CardState::Decode, at_ns(120), at_ns(200)},
                     {CardState::WeightSync, at_ns(200), at_ns(210)},
                     {CardState::Prefill, at_ns(280), at_ns(320)}});
  // 100..120, 120..200 and 280..300
  EXPECT_EQ(f.generating(400), 20 + 80 + 20);
  EXPECT_EQ(f.generating(150), 20 + 30) << "up to a time";
}

/// As those of a server that was replaced, and of its successor.
TEST(BatchTail, HasTheTimeOfOverlappingSpansOnce) {
  TailFeed f;
  f.dispatch(0, 0, 20);
  f.ends(100, 0, 18);
  f.timeline().busy(150, kRollout, {{CardState::Decode, at_ns(110), at_ns(150)}});
  f.timeline().busy(
      250,
      kRollout,
      {{CardState::Prefill, at_ns(140), at_ns(160)}, {CardState::Decode, at_ns(150), at_ns(200)}});
  f.ends(300, 18, 20);
  EXPECT_EQ(f.generating(400), 200 - 110);
}

TEST(BatchTail, IsPartOfTheTimeOfCardsThatJoinInIt) {
  TailFeed f;
  f.dispatch(0, 0, 20);
  f.ends(100, 0, 18);
  SchedulerConfig more = two_cards();
  more.actors.push_back({"rollout-1", actors::RoleKind::Rollout, {CardId(2)}});
  const ActorId joined(static_cast<std::uint32_t>(more.actors.size() - 1));
  f.event(150, event::Scaled{more.actors, {}});
  f.timeline().busy(250, joined, {{CardState::Decode, at_ns(180), at_ns(220)}});
  f.ends(300, 18, 20);
  EXPECT_EQ(f.generating(400), 220 - 180);
}

}  // namespace
}  // namespace temper::orchestrator
