#include "orchestrator/watch/alarms.hpp"

#include "orchestrator/scheduler/state/config.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;

/// A run with steady steps except for small waves, and the faults that a test plants.
class Planted {
 public:
  using Change = std::function<void(MetricsLine&)>;

  explicit Planted(AlarmsConfig config = {}) : alarms_(std::move(config)) {}

  void updates(int n, const Change& change = {}, Duration each = 1s) {
    for (int i = 0; i < n; ++i) {
      MetricsLine line;
      line.update.version = PolicyVersion(++step_);
      line.update.time = time_ += each;
      const double wave = std::sin(static_cast<double>(step_));
      line.update.metrics.reward_mean = 0.6 + 0.05 * wave;
      line.update.metrics.entropy = 1 + 0.1 * wave;
      line.update.metrics.kl = 0.01 + 0.005 * wave;
      line.states = {{actors::CardState::Decode, 0.8}, {actors::CardState::WaitData, 0.2}};
      if (change)
        change(line);
      note(alarms_.on_update(line));
    }
  }
  void health(const Health& h) { note(alarms_.on_health(h)); }
  void record(const Record& r) { note(alarms_.feed(r)); }
  const std::vector<AlarmKind>& raised() const { return raised_; }
  const std::string& text() const { return text_; }

 private:
  void note(const std::vector<Alarm>& alarms) {
    for (const Alarm& alarm : alarms) {
      raised_.push_back(alarm.kind);
      text_ = alarm.text;
    }
  }
  Alarms alarms_;
  std::uint64_t step_ = 0;
  Time time_{};
  std::vector<AlarmKind> raised_;
  std::string text_;
};

using Kinds = std::vector<AlarmKind>;

TEST(Alarms, AreNotRaisedForASteadyRun) {
  Planted run;
  run.updates(1000);
  EXPECT_EQ(run.raised(), Kinds());
}

TEST(Alarms, AreNotRaisedForARunThatLearnsUntilItsEntropyIsLow) {
  Planted run;
  double progress = 0;
  run.updates(600, [&](MetricsLine& line) {
    progress = std::min(1.0, progress + 1.0 / 500);
    line.update.metrics.reward_mean = 0.1 + 0.9 * progress;
    line.update.metrics.entropy = 1.5 * (1 - progress) + 0.02;
  });
  EXPECT_EQ(run.raised(), Kinds());
}

TEST(Alarms, RaiseARewardCollapseOnce) {
  Planted run;
  run.updates(20, [](MetricsLine& line) { line.update.metrics.reward_mean = 0.05; });
  run.updates(80);
  run.updates(40, [](MetricsLine& line) { line.update.metrics.reward_mean = 0.1; });
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::RewardCollapse});
  EXPECT_NE(run.text().find("the best was 0.6"), std::string::npos) << run.text();
}

TEST(Alarms, RaiseAnEntropyCollapseWithoutRewardGain) {
  Planted run;
  run.updates(100);
  run.updates(30, [](MetricsLine& line) {
    line.update.metrics.entropy = 0.01, line.update.metrics.reward_mean = 0.58;
  });
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::EntropyCollapse});
}

TEST(Alarms, RaiseATenfoldKl) {
  Planted run;
  run.updates(100);
  run.updates(30, [](MetricsLine& line) { line.update.metrics.kl = 0.5; });
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::KlBlowUp});
}

TEST(Alarms, RaiseFewEffectiveSamplesWithinTenSteps) {
  const auto effective = [](double share) {
    return [share](MetricsLine& line) { line.update.metrics.effective_samples = share; };
  };
  Planted run;
  run.updates(10, effective(0.9));
  run.updates(6, effective(0.2));
  EXPECT_EQ(run.raised(), Kinds()) << "the mean of ten steps is 0.48";
  run.updates(1, effective(0.2));
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::FewEffectiveSamples});
  EXPECT_NE(run.text().find("41 %"), std::string::npos) << run.text();
  run.updates(20, effective(0.5));
  run.updates(10, effective(0.2));
  EXPECT_EQ(run.raised().size(), 1U) << "it had not ceased";
  run.updates(20, effective(0.9));
  run.updates(10, effective(0.2));
  EXPECT_EQ(run.raised().size(), 2U);
}

TEST(Alarms, DoNotCountEffectiveSamplesThatATrainerDoesNotReport) {
  Planted run;
  run.updates(100, [](MetricsLine& line) { line.update.metrics.effective_samples = 0; });
  EXPECT_EQ(run.raised(), Kinds());
}

TEST(Alarms, RaiseAMismatchOfTokensFromTheCurrentWeights) {
  const auto mismatch = [](double nats, double stale) {
    return [=](MetricsLine& line) {
      line.update.metrics.mismatch = nats;
      line.update.metrics.stale_ratio = 0.4;
      line.update.metrics.stale_tokens = stale;
    };
  };
  Planted run;
  run.updates(10, mismatch(0.02, 0.5));
  run.updates(3, mismatch(0.1, 0.5));
  EXPECT_EQ(run.raised(), Kinds()) << "the mean of ten steps is 0.044";
  run.updates(1, mismatch(0.1, 0.5));
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::EngineMismatch});
  EXPECT_NE(run.text().find("0.052 nats"), std::string::npos) << run.text();
}

TEST(Alarms, CountMismatchByTokensAndNotStaleOnes) {
  Planted run;
  run.updates(100, [](MetricsLine& line) {  // One step in ten has fresh tokens, and agrees.
    const bool fresh = line.update.version.value() % 10 == 0;
    line.update.metrics.mismatch = fresh ? 0.01 : 0;
    line.update.metrics.stale_ratio = 0.4;
    line.update.metrics.stale_tokens = fresh ? 0.9 : 1;
  });
  EXPECT_EQ(run.raised(), Kinds());
  run.updates(20, [](MetricsLine& line) {
    const bool fresh = line.update.version.value() % 10 == 0;
    line.update.metrics.mismatch = fresh ? 0.2 : 0;
    line.update.metrics.stale_tokens = fresh ? 0.9 : 1;
  });
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::EngineMismatch});
}

TEST(Alarms, NameAMetricThatIsNotFinite) {
  Planted run;
  run.updates(3);
  run.updates(2, [](MetricsLine& line) { line.update.metrics.gradient_norm = NAN; });
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::NotFinite});
  EXPECT_EQ(run.text(), "gradient_norm of step 4 is not a finite number");
}

/// As in a run: a step with such numbers is rejected, and its sender is lost.
TEST(Alarms, NameAnActorLostToANonFiniteNumber) {
  for (const char* reason : {"trainer.trained: metrics of an update: loss is nan",
                             "gradient norm inf and loss 3 are not both finite",
                             "a text that does not tell it"}) {
    const auto lost = [&] {
      return event::ActorDown{.actor = ActorId(0), .reason = reason, .not_finite = true};
    };
    Planted run;
    SchedulerConfig config;
    config.actors = {{"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
    run.record({0, Time(), event::Started{config}, {}});
    run.updates(3);
    run.record({1, Time(), event::ActorDown{ActorId(0), "killed by signal 9"}, {}});
    EXPECT_EQ(run.raised(), Kinds());
    run.record({2, Time(), lost(), {}});
    EXPECT_EQ(run.raised(), Kinds{AlarmKind::NotFinite});
    EXPECT_EQ(run.text(), std::string("trainer was lost: ") + reason);
    run.updates(1);
    run.record({3, Time(), lost(), {}});
    EXPECT_EQ(run.raised().size(), 2U) << "a step between them was healthy";
  }
}

/// Records of earlier builds have the fact in their text only, and a text is not data.
TEST(Alarms, DoNotReadTheReasonOfALoss) {
  Planted run;
  SchedulerConfig config;
  config.actors = {{"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  run.record({0, Time(), event::Started{config}, {}});
  for (const char* reason : {"loss is nan", "reward is inf", "not both finite", "is -nan"})
    run.record({1, Time(), event::ActorDown{ActorId(0), reason}, {}});
  EXPECT_EQ(run.raised(), Kinds());
}

TEST(Alarms, AreRaisedAgainAfterTheirConditionCeased) {
  Planted run;
  for (int i = 0; i < 3; ++i) {
    run.updates(1, [](MetricsLine& line) { line.update.metrics.loss = INFINITY; });
    run.updates(1);
  }
  EXPECT_EQ(run.raised().size(), 3U);
}

TEST(Alarms, RaiseAGrowingWait) {
  Planted run;
  run.updates(100);
  run.updates(30, [](MetricsLine& line) {
    line.states = {{actors::CardState::Decode, 0.4}, {actors::CardState::WaitQuota, 0.6}};
  });
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::GrowingWait});
}

TEST(Alarms, IgnoreShortWaits) {
  Planted run;
  const Planted::Change waits = [](MetricsLine& line) {
    line.states = {{actors::CardState::WaitData, 1.0}};
  };
  run.updates(100, {}, 10ms);
  run.updates(10, waits, 90ms);
  run.updates(100, {}, 10ms);
  EXPECT_EQ(run.raised(), Kinds());
}

TEST(Alarms, StartAgainAfterARollback) {
  Planted before, after;
  AlarmsConfig config;
  Alarms alarms(config);
  MetricsLine line;
  for (int step = 1; step <= 100; ++step) {
    line.update.version = PolicyVersion(static_cast<std::uint64_t>(step));
    line.update.metrics.reward_mean = 0.9;
    ASSERT_TRUE(alarms.on_update(line).empty());
  }
  for (int step = 20; step <= 120; ++step) {
    line.update.version = PolicyVersion(static_cast<std::uint64_t>(step));
    line.update.metrics.reward_mean = 0.2;
    EXPECT_TRUE(alarms.on_update(line).empty());
  }
}

/// Three engines; the responses of the last one take `slow` times as long.
Kinds raised_of_engines(int slow) {
  Planted run;
  SchedulerConfig config;
  for (const char* name : {"rollout-0", "rollout-1", "rollout-2"})
    config.actors.push_back({name, actors::RoleKind::Rollout, {}, 4, false});
  run.record({0, Time{}, event::Started{config}, {}});
  for (int second = 0; second < 60; ++second) {
    for (std::uint32_t engine = 0; engine < 3; ++engine) {
      const LeaseId lease(static_cast<std::uint64_t>(second) * 3 + engine + 1);
      const ResponseId response(lease.value());
      const Time begin(second * 1s);
      command::Dispatch dispatch;
      dispatch.actor = ActorId(engine);
      dispatch.lease = lease;
      dispatch.responses = {response};
      run.record({0, begin, event::DeadlineReached{}, {dispatch}});
      event::Generated said{ActorId(engine), {}};
      said.items.push_back({lease, response, Tokens(4), Tokens(100), {}, {}, false});
      const Duration took = engine == 2 ? slow * 100ms : 100ms;
      run.record({0, begin + took, said, {}});
    }
    run.updates(1);
  }
  return run.raised();
}

TEST(Alarms, NameASlowEngine) {
  EXPECT_EQ(raised_of_engines(3), Kinds{AlarmKind::SlowEngine});
}
TEST(Alarms, IgnoreEnginesOfEqualSpeed) {
  EXPECT_EQ(raised_of_engines(1), Kinds());
}

Health healthy(int second) {
  return {
      Time(second * 1s), Time(second * 1s), Bytes(1 << 30), Bytes(std::int64_t{1} << 40), false};
}

TEST(Alarms, AreNotRaisedForAHealthyMachine) {
  Planted run;
  for (int second = 0; second < 1000; ++second) {
    run.updates(1);
    run.health(healthy(second));
  }
  EXPECT_EQ(run.raised(), Kinds());
}

TEST(Alarms, RaiseMemoryGrowthAboveHalf) {
  Planted run;
  for (int second = 0; second < 600; ++second) {
    Health h = healthy(second);
    h.memory = Bytes((1 << 30) + second * (std::int64_t{2} << 20));
    run.updates(1);
    run.health(h);
  }
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::MemoryGrowth});
}

TEST(Alarms, RaiseAnAlmostFullDisk) {
  Planted run;
  Health h = healthy(1);
  h.disk_free = Bytes(100 << 20);
  run.health(h);
  run.health(h);
  EXPECT_EQ(run.raised(), Kinds{AlarmKind::DiskAlmostFull});
  EXPECT_EQ(run.text(), "only 100 MiB are free on the disk of the run folder");
}

/// A run that stops after ten steps, one a second.
Kinds raised_of_stillness(int until, bool over) {
  Planted run;
  for (int second = 0; second < until; ++second) {
    Health h = healthy(second);
    h.over = over;
    if (second < 10)
      run.updates(1);
    run.health(h);
  }
  return run.raised();
}

TEST(Alarms, RaiseNoProgressAfterTwentyMedianSteps) {
  EXPECT_EQ(raised_of_stillness(120, false), Kinds{AlarmKind::NoProgress});
}
TEST(Alarms, IgnoreShortStalls) {
  EXPECT_EQ(raised_of_stillness(35, false), Kinds());
}
TEST(Alarms, ExpectNoProgressOfAFinishedRun) {
  EXPECT_EQ(raised_of_stillness(120, true), Kinds());
}

TEST(Alarms, AreNotRaisedIfDisabled) {
  AlarmsConfig off;
  off.enabled = false;
  Planted run(off);
  run.updates(2, [](MetricsLine& line) { line.update.metrics.loss = NAN; });
  Health h = healthy(1);
  h.disk_free = Bytes(0);
  run.health(h);
  EXPECT_EQ(run.raised(), Kinds());
}

}  // namespace
}  // namespace temper::orchestrator
