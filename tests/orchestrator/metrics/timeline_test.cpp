#include "core/random.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/metrics/timeline_feed.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace temper::orchestrator {
namespace {

using actors::CardState;
using actors::RoleKind;

command::Dispatch dispatch(std::uint64_t lease, std::size_t responses) {
  command::Dispatch c{kRollout, LeaseId(lease), {}, {}, {}, {}};
  for (std::size_t i = 0; i < responses; ++i)
    c.responses.emplace_back(lease * 10 + i);
  return c;
}

event::Generated generated(std::uint64_t lease, std::size_t responses) {
  event::Generated e{kRollout, {}};
  for (std::size_t i = 0; i < responses; ++i)
    e.items.push_back({LeaseId(lease), ResponseId(lease * 10 + i), {}, {}, {}});
  return e;
}

TEST(Timeline, DividesTheTimeOfAnEngineBetweenTrainingAndEvaluation) {
  SchedulerConfig config = two_cards();
  config.evaluation.every = 1;
  TimelineFeed f(config);
  f.wait(0, kRollout, CardState::Idle);
  f.event(0, event::DeadlineReached{}, {dispatch(1, 3), dispatch(kFirstEvaluation, 1)});
  f.event(40, generated(1, 3));  // From here on it only evaluates.
  f.busy(100, kRollout, {{CardState::Decode, at_ns(0), at_ns(60)}});
  EXPECT_EQ(f.ns(0, CardState::Evaluate, 100), 40 / 4 + 20);
  EXPECT_EQ(f.ns(0, CardState::Decode, 100), 30);
  f.event(110, generated(kFirstEvaluation, 1));
  f.busy(120, kRollout, {{CardState::Decode, at_ns(60), at_ns(110)}});
  EXPECT_EQ(f.ns(0, CardState::Evaluate, 200), 30 + 50);
  EXPECT_EQ(sum(f.timeline.totals(0, at_ns(200))), 200);
}

TEST(Timeline, ACardIsDownUntilAnActorIsReady) {
  TimelineFeed f;
  f.wait(40, kTrainer, CardState::WaitData, {WaitKind::Groups});
  EXPECT_EQ(f.ns(0, CardState::Down, 100), 100);
  EXPECT_EQ(f.ns(1, CardState::Down, 100), 40);
  EXPECT_EQ(f.ns(1, CardState::WaitData, 100), 60);
}

TEST(Timeline, TheMostImportantStateOfACardWins) {
  TimelineFeed f;
  f.busy(100, kReward, {{CardState::Reward, at_ns(10), at_ns(60)}});
  f.busy(100, kTrainer, {{CardState::Train, at_ns(30), at_ns(50)}});
  // reward 10..30 and 50..60, train 30..50
  EXPECT_EQ(f.ns(1, CardState::Reward, 100), 30);
  EXPECT_EQ(f.ns(1, CardState::Train, 100), 20);
  EXPECT_EQ(f.ns(1, CardState::Down, 100), 50);
}

TEST(Timeline, WaitingForToolsIsShownWhileNobodyElseOnTheCardWorks) {
  TimelineFeed f;
  f.wait(0, kReward, CardState::WaitData, {WaitKind::Responses});
  f.busy(100, kReward, {{CardState::WaitTools, at_ns(10), at_ns(60)}});
  f.busy(100, kTrainer, {{CardState::Switch, at_ns(30), at_ns(50)}});
  EXPECT_EQ(f.ns(1, CardState::WaitTools, 100), 30);
  EXPECT_EQ(f.ns(1, CardState::Switch, 100), 20);
  EXPECT_EQ(f.ns(1, CardState::WaitData, 100), 50);
}

/// rollout-0 and reference-0 on card 0, as in the default placement of a machine.
SchedulerConfig shared_card() {
  SchedulerConfig c;
  c.actors = {{"rollout-0", RoleKind::Rollout, {CardId(0)}, 4},
              {"reference-0", RoleKind::Reference, {CardId(0)}, 0}};
  return c;
}
constexpr ActorId kReference(1);

TEST(Timeline, TheActorThatWorksNextDeterminesTheWait) {
  TimelineFeed f(shared_card());
  f.wait(0, kRollout, CardState::WaitQuota, {WaitKind::StalenessBound});
  f.wait(0, kReference, CardState::WaitData, {WaitKind::Responses});
  f.busy(60, kRollout, {{CardState::Decode, at_ns(40), at_ns(60)}});
  f.busy(100, kReference, {{CardState::Reference, at_ns(90), at_ns(100)}});
  // 0..40 ends with the rollout's work, 60..90 with the reference's.
  EXPECT_EQ(f.ns(0, CardState::WaitQuota, 100), 40);
  EXPECT_EQ(f.ns(0, CardState::WaitData, 100), 30);
  const auto waits = f.timeline.waits(at_ns(100));
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].reason.cause.kind, WaitKind::StalenessBound);
  EXPECT_EQ(waits[0].card_time.count(), 40);
}

TEST(Timeline, MovingWeightsDoesNotEndAWait) {
  TimelineFeed f(shared_card());
  f.wait(0, kRollout, CardState::WaitQuota, {WaitKind::StalenessBound});
  f.wait(0, kReference, CardState::WaitData, {WaitKind::Responses});
  f.busy(
      100,
      kRollout,
      {{CardState::WeightSync, at_ns(20), at_ns(30)}, {CardState::Decode, at_ns(50), at_ns(60)}});
  EXPECT_EQ(f.ns(0, CardState::WaitQuota, 60), 40);
  EXPECT_EQ(f.ns(0, CardState::WeightSync, 60), 10);
}

TEST(Timeline, AnEarlierSpanReportedLateTakesOverThePrecedingWait) {
  TimelineFeed f(shared_card());
  f.wait(0, kRollout, CardState::WaitQuota, {WaitKind::StalenessBound});
  f.wait(0, kReference, CardState::WaitData, {WaitKind::Responses});
  f.busy(100, kRollout, {{CardState::Decode, at_ns(80), at_ns(100)}});
  EXPECT_EQ(f.ns(0, CardState::WaitQuota, 100), 80);
  f.busy(100, kReference, {{CardState::Reference, at_ns(30), at_ns(40)}});
  EXPECT_EQ(f.ns(0, CardState::WaitData, 100), 30);
  EXPECT_EQ(f.ns(0, CardState::WaitQuota, 100), 40);
}

TEST(Timeline, ACardIsDownWhileTheActorThatWorksNextIsDown) {
  TimelineFeed f(shared_card());
  f.wait(0, kReference, CardState::WaitData, {WaitKind::Responses});
  f.busy(100, kRollout, {{CardState::Decode, at_ns(50), at_ns(100)}});
  EXPECT_EQ(f.ns(0, CardState::Down, 100), 50);
}

TEST(Timeline, AfterTheLastWorkTheFirstActorThatIsNotDownDeterminesTheWait) {
  TimelineFeed f;
  f.wait(10, kReward, CardState::Idle);
  f.wait(30, kTrainer, CardState::WaitData, {WaitKind::Groups});
  f.wait(60, kTrainer, CardState::Down, {WaitKind::Start});
  EXPECT_EQ(f.ns(1, CardState::Down, 100), 10);
  EXPECT_EQ(f.ns(1, CardState::WaitData, 100), 30);
  EXPECT_EQ(f.ns(1, CardState::Idle, 100), 60);
}

TEST(Timeline, ALateSpanReplacesAWait) {
  TimelineFeed f;
  f.wait(10, kTrainer, CardState::WaitData, {WaitKind::Groups});
  f.wait(90, kTrainer, CardState::Idle);
  EXPECT_EQ(f.ns(1, CardState::WaitData, 100), 80);
  f.busy(100, kTrainer, {{CardState::Train, at_ns(20), at_ns(95)}});
  EXPECT_EQ(f.ns(1, CardState::WaitData, 100), 10);
  EXPECT_EQ(f.ns(1, CardState::Train, 100), 75);
  EXPECT_EQ(f.ns(1, CardState::Idle, 100), 5);
}

TEST(Timeline, CutsSpansAtTheRequestedTime) {
  TimelineFeed f;
  f.busy(100, kRollout, {{CardState::Decode, at_ns(80), at_ns(500)}});
  EXPECT_EQ(f.ns(0, CardState::Decode, 100), 20);
  EXPECT_EQ(sum(f.timeline.totals(0, at_ns(100))), 100);
  f.wait(200, kRollout, CardState::WaitQuota, {WaitKind::StalenessBound});
  EXPECT_EQ(f.ns(0, CardState::Decode, 600), 420);
  EXPECT_EQ(f.ns(0, CardState::WaitQuota, 600), 100);
}

TEST(Timeline, CardsWithTheSameActorsShareALineAndEachCounts) {
  SchedulerConfig config;
  config.actors = {{"rollout-0", RoleKind::Rollout, {CardId(0), CardId(1), CardId(2)}, 4},
                   {"trainer", RoleKind::Trainer, {CardId(3)}, 0}};
  TimelineFeed f(config);
  f.busy(100, kRollout, {{CardState::Decode, at_ns(10), at_ns(60)}});
  ASSERT_EQ(f.timeline.cards().size(), 4U);
  ASSERT_EQ(f.timeline.lines().size(), 2U);
  EXPECT_EQ(f.timeline.lines()[0].size(), 3U);
  for (std::size_t card = 0; card < 3; ++card)
    EXPECT_EQ(f.ns(card, CardState::Decode, 100), 50);
  EXPECT_EQ(f.ns(3, CardState::Decode, 100), 0);
  EXPECT_EQ(f.timeline.totals(at_ns(100))[index_of(CardState::Decode)].count(), 150);
  EXPECT_EQ(sum(f.timeline.totals(at_ns(100))), 400);
}

TEST(Timeline, AResumeMarksEveryActorAsDown) {
  TimelineFeed f;
  f.wait(10, kRollout, CardState::Idle);
  f.event(50, event::Resumed{}, {command::Launch{kRollout}});
  f.wait(70, kRollout, CardState::Idle);
  EXPECT_EQ(f.ns(0, CardState::Down, 100), 30);
  EXPECT_EQ(f.ns(0, CardState::Idle, 100), 70);
}

TEST(Timeline, ATrainerHasAllItsCardsAfterAResume) {
  // The trainer and two engines share both cards; the trainer was given those of one engine.
  SchedulerConfig config;
  config.actors = {{"rollout-0", RoleKind::Rollout, {CardId(0)}, 4},
                   {"rollout-1", RoleKind::Rollout, {CardId(1)}, 4},
                   {"trainer", RoleKind::Trainer, {CardId(0), CardId(1)}, 0}};
  TimelineFeed f(config);
  const auto train = [&](std::int64_t begin) {
    f.busy(begin + 10, ActorId(2), {{CardState::Train, at_ns(begin), at_ns(begin + 10)}});
  };
  f.event(10,
          event::DeadlineReached{},
          {command::Switch{ActorId(2), actors::SwitchAction::OnloadOptimizer, {ActorId(0)}}});
  train(20);
  EXPECT_EQ(f.ns(0, CardState::Train, 100), 10);
  EXPECT_EQ(f.ns(1, CardState::Train, 100), 0);
  f.event(100, event::Resumed{});
  train(110);
  EXPECT_EQ(f.ns(0, CardState::Train, 200), 20);
  EXPECT_EQ(f.ns(1, CardState::Train, 200), 10);
}

TEST(Timeline, KnowsWhenNothingGeneratesOrTrains) {
  TimelineFeed f;
  f.busy(100,
         kRollout,
         {{CardState::Prefill, at_ns(10), at_ns(20)}, {CardState::Decode, at_ns(20), at_ns(50)}});
  f.busy(100, kTrainer, {{CardState::Train, at_ns(40), at_ns(70)}});
  f.busy(100, kReward, {{CardState::Reward, at_ns(0), at_ns(100)}});
  // 10..70 is covered.
  EXPECT_EQ(f.timeline.without_generation_or_training(at_ns(100)).count(), 40);
}

TEST(Timeline, AggregatesWaitsOfOneKind) {
  TimelineFeed f;
  const auto groups = [](std::uint64_t group, std::uint64_t ready) {
    return WaitCause{WaitKind::Groups, GroupId(group), PolicyVersion(3), ready, 4};
  };
  const WaitCause seventh = groups(7, 1), twelfth = groups(12, 2);
  f.wait(0, kTrainer, CardState::WaitData, seventh);
  f.wait(30, kTrainer, CardState::Idle);
  f.wait(40, kTrainer, CardState::WaitData, twelfth);
  const auto waits = f.timeline.waits(at_ns(100));
  ASSERT_GE(waits.size(), 2U);
  EXPECT_EQ(waits[0].reason.cause, WaitCause{WaitKind::Start});
  EXPECT_EQ(waits[0].card_time.count(), 100);  // card 0
  EXPECT_EQ(waits[1].reason.cause, WaitCause{WaitKind::Groups});
  EXPECT_EQ(waits[1].card_time.count(), 90);
  EXPECT_EQ(waits[1].longest.count(), 60);
  EXPECT_EQ(waits[1].longest_cause, twelfth);
}

/// A card shows the trainer's wait only while no other actor works on it.
TEST(Timeline, TheLongestWaitNeverExceedsTheTotalOfItsReason) {
  const auto longest_of = [](const TimelineFeed& f, std::int64_t until) {
    for (const WaitTotal& w : f.timeline.waits(at_ns(until))) {
      if (w.reason.cause.kind == WaitKind::Groups)
        return std::tuple(w.card_time.count(), w.longest.count(), w.longest_cause);
    }
    return std::tuple(std::int64_t{0}, std::int64_t{0}, WaitCause());
  };
  const auto groups = [](std::uint64_t first) {
    return WaitCause{WaitKind::Groups, GroupId(first), PolicyVersion(3), 1, 4};
  };
  TimelineFeed f;
  f.wait(0, kTrainer, CardState::WaitData, groups(7));
  EXPECT_EQ(longest_of(f, 50), std::tuple(50, 50, groups(7)));
  f.busy(50, kTrainer, {{CardState::Train, at_ns(10), at_ns(35)}});
  EXPECT_EQ(longest_of(f, 50), std::tuple(25, 15, groups(7)));
  // Work that is reported late splits it.
  f.busy(60, kTrainer, {{CardState::Train, at_ns(40), at_ns(55)}});
  EXPECT_EQ(longest_of(f, 60), std::tuple(20, 10, groups(7)));
  // Another instance of the same reason: one wait, named by its first instance.
  f.wait(60, kTrainer, CardState::WaitData, groups(9));
  EXPECT_EQ(longest_of(f, 90), std::tuple(50, 35, groups(7)));
  f.wait(90, kTrainer, CardState::Idle);
  f.wait(95, kTrainer, CardState::WaitData, groups(11));
  EXPECT_EQ(longest_of(f, 200), std::tuple(155, 105, groups(11)));
}

SchedulerConfig random_fleet(Random& random) {
  SchedulerConfig c;
  const std::uint64_t cards = 1 + random.below(3);
  const std::uint64_t actors = cards + random.below(4);
  for (std::uint64_t a = 0; a < actors; ++a) {
    ActorSpec spec;
    spec.name = "a";
    spec.role = static_cast<RoleKind>(random.below(4));
    spec.cards = {CardId(static_cast<std::uint32_t>(a < cards ? a : random.below(cards)))};
    c.actors.push_back(spec);
  }
  return c;
}

/// The definition in the header, evaluated nanosecond by nanosecond.
class SlowTimeline {
 public:
  struct Wait {
    CardState state = CardState::Down;
    WaitCause cause{WaitKind::Start};
  };

  SlowTimeline(const SchedulerConfig& config, std::int64_t wall)
      : config_(config),
        busy_(config.actors.size(), std::vector<CardState>(length(wall), CardState::Down)),
        wait_(config.actors.size(), std::vector<Wait>(length(wall))) {}
  void wait(std::int64_t from, ActorId actor, const Wait& wait) {
    std::fill(wait_[actor.value()].begin() + from, wait_[actor.value()].end(), wait);
  }
  /// Down: not busy.
  static std::size_t order(CardState s) {
    return index_of(s == CardState::WaitTools ? CardState::WaitData : s);
  }
  void span(ActorId actor, const actors::Span& s) {
    auto& line = busy_[actor.value()];
    for (auto t = s.begin.time_since_epoch().count(); t < s.end.time_since_epoch().count(); ++t) {
      if (length(t) < line.size())
        line[length(t)] = std::ranges::min(line[length(t)], s.state, {}, order);
    }
  }
  /// Time in each state, and of each wait.
  std::pair<std::vector<std::int64_t>, std::map<WaitReason, std::int64_t>> totals(
      CardId card) const {
    std::vector<std::int64_t> states(kCardStates);
    std::map<WaitReason, std::int64_t> waits;
    const std::vector<std::size_t> actors = on(card);
    for (std::size_t t = 0; t < busy_.front().size(); ++t) {
      const CardState busy = busy_[most_important(actors, t)][t];
      if (busy != CardState::Down) {
        ++states[index_of(busy)];
        continue;
      }
      const std::size_t shown = waiting(actors, t);
      const Wait& wait = wait_[shown][t];
      ++states[index_of(wait.state)];
      ++waits[{config_.actors[shown].role, wait.state, wait.cause.without_instance()}];
    }
    return {states, waits};
  }

 private:
  static std::size_t length(std::int64_t n) { return static_cast<std::size_t>(n); }
  /// In the order trainer, rollout, reference, reward.
  std::vector<std::size_t> on(CardId card) const {
    std::vector<std::size_t> out;
    for (const RoleKind role :
         {RoleKind::Trainer, RoleKind::Rollout, RoleKind::Reference, RoleKind::Reward}) {
      for (std::size_t a = 0; a < config_.actors.size(); ++a) {
        if (config_.actors[a].role == role && config_.actors[a].cards.front() == card)
          out.push_back(a);
      }
    }
    return out;
  }
  std::size_t most_important(const std::vector<std::size_t>& actors, std::size_t t) const {
    return *std::ranges::min_element(actors, {}, [&](std::size_t a) { return order(busy_[a][t]); });
  }
  std::size_t waiting(const std::vector<std::size_t>& actors, std::size_t t) const {
    for (std::size_t later = t; later < busy_.front().size(); ++later) {
      const std::size_t a = most_important(actors, later);
      if (is_busy(busy_[a][later]))
        return a;
    }
    for (const std::size_t a : actors) {
      if (wait_[a][t].state != CardState::Down)
        return a;
    }
    return actors.front();
  }

  SchedulerConfig config_;
  std::vector<std::vector<CardState>> busy_;
  std::vector<std::vector<Wait>> wait_;
};

/// A random history of a random fleet, fed to both.
void tell_random_life(Random& random,
                      std::int64_t wall,
                      TimelineFeed& feed,
                      SlowTimeline& slow,
                      const SchedulerConfig& config) {
  for (std::int64_t now = 0; now <= wall; now += static_cast<std::int64_t>(random.below(10))) {
    const ActorId actor(static_cast<std::uint32_t>(random.below(config.actors.size())));
    if (random.chance(0.5)) {
      const auto state = static_cast<CardState>(5 + random.below(7));
      const WaitCause cause{static_cast<WaitKind>(random.below(3)), GroupId(random.below(3))};
      feed.wait(now, actor, state, cause);
      slow.wait(std::min(now, wall), actor, {state, cause});
    } else {
      const auto begin =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(now) + 20));
      // Reported spans are in the past.
      const auto end = std::min(begin + static_cast<std::int64_t>(random.below(60)), wall);
      const auto drawn = static_cast<CardState>(random.below(8));
      const CardState state = drawn == CardState::WaitData ? CardState::WaitTools : drawn;
      const actors::Span span{state, at_ns(begin), at_ns(end)};
      feed.busy(now, actor, {span});
      slow.span(actor, span);
    }
  }
}

TEST(Timeline, AnyOrderOfReportsPartitionsTheTimeAsDefined) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed, "timeline");
    const SchedulerConfig config = random_fleet(random);
    const auto wall = static_cast<std::int64_t>(50 + random.below(400));
    TimelineFeed feed(config);
    SlowTimeline slow(config, wall);
    tell_random_life(random, wall, feed, slow, config);
    std::map<WaitReason, std::int64_t> waits;
    for (std::size_t card = 0; card < feed.timeline.cards().size(); ++card) {
      const StateTimes times = feed.timeline.totals(card, at_ns(wall));
      const auto [expected, why] = slow.totals(feed.timeline.cards()[card]);
      ASSERT_EQ(sum(times), wall) << "seed " << seed;
      for (std::size_t s = 0; s < kCardStates; ++s)
        ASSERT_EQ(times[s].count(), expected[s]) << "seed " << seed << " card " << card << " " << s;
      for (const auto& [reason, time] : why)
        waits[reason] += time;
    }
    for (const WaitTotal& total : feed.timeline.waits(at_ns(wall))) {
      ASSERT_EQ(total.card_time.count(), waits[total.reason])
          << "seed " << seed << ": " << name_of(total.reason.state) << " for "
          << name_of(total.reason.cause.kind);
      waits.erase(total.reason);
    }
    std::erase_if(waits, [](const auto& w) { return w.second == 0; });
    ASSERT_TRUE(waits.empty()) << "seed " << seed;
  }
}

TEST(Timeline, SettledSlicesAreContiguousAndComplete) {
  SchedulerConfig config = two_cards();
  const Duration second = std::chrono::seconds(1);
  TimelineFeed f(config);
  std::map<CardId, Time> end;
  std::map<CardId, StateTimes> drawn;
  f.timeline.set_sink([&](CardId card, const CardSlice& slice) {
    EXPECT_EQ(slice.begin, end[card]);
    end[card] = slice.end;
    drawn[card][index_of(slice.state)] += slice.end - slice.begin;
  });
  const std::int64_t wall = 2000 * second.count();  // Longer than the deadlines.
  Random random(1, "settle");
  for (std::int64_t now = 0; now < wall; now += second.count()) {
    f.busy(now, kTrainer, {{CardState::Train, at_ns(now - second.count() / 2), at_ns(now)}});
    f.wait(now, kRollout, random.chance(0.5) ? CardState::WaitQuota : CardState::Idle);
  }
  const StateTimes totals = f.timeline.totals(1, at_ns(wall));
  EXPECT_GT(end[CardId(1)], at_ns(0)) << "old parts are settled on the way";
  f.timeline.finish(at_ns(wall));
  EXPECT_EQ(drawn[CardId(1)], totals);
  EXPECT_EQ(end[CardId(0)], at_ns(wall));
  EXPECT_EQ(sum(f.timeline.totals(at_ns(wall))), 2 * wall);
}

}  // namespace
}  // namespace temper::orchestrator
