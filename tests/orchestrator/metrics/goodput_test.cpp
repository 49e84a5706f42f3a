#include "orchestrator/metrics/goodput.hpp"

#include "tests/support/scheduler_world.hpp"
#include "tests/support/times.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using testing::Chaos;
using testing::random_config;
using testing::World;

const Reason kLost = reason_with(ReasonKind::WorkerLost, "killed");
constexpr ActorId kFirst(0), kSecond(1), kJudge(2), kLearner(3);

Duration sum_of(const TimeLost& t) {
  return t.useful + t.start + t.down + t.checkpoint + t.missing + t.again;
}

/// Two engines of three cards and one of one, a reward actor, a trainer.
class GoodputOf {
 public:
  GoodputOf() {
    SchedulerConfig config;
    config.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0), CardId(1), CardId(2)}, 4},
                     {"rollout-1", actors::RoleKind::Rollout, {CardId(3)}, 4},
                     {"reward-0", actors::RoleKind::Reward, {CardId(4)}, 0},
                     {"trainer", actors::RoleKind::Trainer, {CardId(4)}, 0}};
    happens(0, event::Started{config});
    for (const ActorId actor : {kFirst, kSecond, kJudge, kLearner})
      happens(10, event::ActorReady{actor, std::nullopt});
  }
  std::uint64_t happens(int second, Event event, Commands commands = {}) {
    goodput_.feed({sequence_, at(second), std::move(event), std::move(commands)});
    return sequence_++;
  }
  std::uint64_t saves(int from, int to) {
    happens(from, event::DeadlineReached{}, {command::SaveCheckpoint{kLearner, PolicyVersion(1)}});
    return happens(to, event::CheckpointSaved{PolicyVersion(1), ""});
  }
  TimeLost until(int second) const { return goodput_.lost(at(second)); }

 private:
  Goodput goodput_;
  std::uint64_t sequence_ = 0;
};

TEST(Goodput, ARunInWhichNothingFailsLosesItsStart) {
  const TimeLost t = GoodputOf().until(110);
  EXPECT_EQ(t.start, std::chrono::seconds(10));
  EXPECT_EQ(t.useful, std::chrono::seconds(100));
  EXPECT_DOUBLE_EQ(t.goodput(), 100.0 / 110);
}

TEST(Goodput, ASaveIsTimeThatIsLost) {
  GoodputOf run;
  run.saves(50, 80);
  EXPECT_EQ(run.until(110).checkpoint, std::chrono::seconds(30));
  EXPECT_EQ(run.until(110).useful, std::chrono::seconds(70));
}

TEST(Goodput, WorkBehindTheCheckpointIsLostWithTheTrainer) {
  GoodputOf run;
  const std::uint64_t saved = run.saves(50, 60);
  run.happens(90, event::ActorDown{kLearner, "host 3 failed"});
  run.happens(90, event::Resumed{saved, 1});
  for (const ActorId actor : {kJudge, kSecond})
    run.happens(95, event::ActorReady{actor, std::nullopt});
  run.happens(120, event::ActorReady{kLearner, PolicyVersion(1)});
  run.happens(140, event::ActorReady{kFirst, std::nullopt});
  const TimeLost t = run.until(150);
  EXPECT_EQ(t.again, std::chrono::seconds(30));    // from 60 to 90
  EXPECT_EQ(t.down, std::chrono::seconds(30));     // from 90 to 120
  EXPECT_EQ(t.missing, std::chrono::seconds(15));  // three of four cards, from 120 to 140
  EXPECT_EQ(t.useful, std::chrono::seconds(40 + 5 + 10));
  EXPECT_EQ(sum_of(t), t.wall);
  EXPECT_EQ(t.rollbacks, 1U);
}

TEST(Goodput, AnEngineThatIsDownCostsItsShareOfTheRolloutCards) {
  GoodputOf run;
  run.happens(20, event::ActorDown{kSecond, "link 3 failed"}, {command::Launch{kSecond, kLost}});
  run.happens(60, event::ActorReady{kSecond, std::nullopt});
  EXPECT_EQ(run.until(60).missing, std::chrono::seconds(10));
  EXPECT_EQ(run.until(60).losses, 1U);
}

TEST(Goodput, AnActorThatIsLostWhileItStartsIsNoSecondLossHoweverItIsStartedAgain) {
  for (const bool paused : {true, false}) {
    GoodputOf run;
    const Commands again = paused ? Commands{command::Discard{kSecond, kLost, at(40)}}
                                  : Commands{command::Launch{kSecond, kLost}};
    run.happens(20, event::ActorDown{kSecond, "killed"}, {command::Launch{kSecond, kLost}});
    run.happens(30, event::ActorDown{kSecond, "killed"}, again);
    run.happens(40, event::DeadlineReached{}, {command::Launch{kSecond}});
    EXPECT_EQ(run.until(60).losses, 1U) << paused;
  }
}

TEST(Goodput, PartsSumToTheWallInEveryWorldAndItIsNeverAboveOne) {
  std::uint64_t rollbacks = 0, saves = 0;
  Duration again{}, missing{};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, "goodput");
    SchedulerConfig config = random_config(random);
    config.checkpoint_every = 1 + random.below(3);
    const Chaos chaos{.crash = 0.03, .trainer_crash = 0.05, .hang = 0.01};
    Goodput goodput;
    World world(config, chaos, seed);
    Time last{};
    world.on_record = [&](const Record& record) {
      goodput.feed(record);
      last = record.time;
      const TimeLost t = goodput.lost(record.time);
      ASSERT_EQ(sum_of(t), t.wall) << "seed " << seed << ", record " << record.sequence;
      ASSERT_EQ(t.wall, record.time.time_since_epoch());
      for (const Duration part : {t.useful, t.start, t.down, t.checkpoint, t.missing, t.again})
        ASSERT_GE(part, Duration{});
      ASSERT_LE(t.goodput(), 1.0);
    };
    const auto played = world.play();
    const TimeLost t = goodput.lost(last);
    EXPECT_EQ(t.updates, played.audit.steps) << "seed " << seed;
    rollbacks += t.rollbacks;
    saves += t.checkpoints;
    again += t.again;
    missing += t.missing;
  }
  EXPECT_GT(rollbacks, 50U);
  EXPECT_GT(saves, 300U);
  EXPECT_GT(again, Duration{});
  EXPECT_GT(missing, Duration{});
}

}  // namespace
}  // namespace temper::orchestrator
