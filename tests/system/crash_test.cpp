// Processes that die, hang or are told to stop while a run goes on. Where "when" is drawn, it is
// drawn from TEMPER_TEST_SEED (1 if it is not set) and the test's name, and a failure prints the
// seed.
#include "core/random.hpp"
#include "tests/support/seed.hpp"
#include "tests/system/harness.hpp"

#include <signal.h>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;

/// Draws when to disturb a run of 24 steps; each test for itself.
class SeededSystemTest : public SystemTest {
 protected:
  std::uint64_t some_version() {
    const std::uint64_t version = 1 + random_.below(18);
    RecordProperty("version", std::to_string(version));
    return version;
  }

 private:
  const Seed seed_;
  Random random_{seed_.value(), seed_.stream()};
};

class AnActorThatDies : public SeededSystemTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(EachRole,
                         AnActorThatDies,
                         testing::Values("rollout-0", "reference-0", "reward-0", "trainer"),
                         [](const auto& p) {
                           const std::string name = p.param;
                           return name.substr(0, name.find('-'));
                         });

TEST_P(AnActorThatDies, IsReplacedAndNothingIsLostOrRepeated) {
  run({kSlow});
  await_version(some_version());
  auto found = workers();
  ASSERT_TRUE(found.contains(GetParam()));
  ASSERT_EQ(::kill(found[GetParam()], SIGKILL), 0);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_EQ(count_events<event::ActorDown>(records()), 1U);
}

TEST_P(AnActorThatDies, IsReplacedInColocatedPlacementToo) {
  run({kSlow, "placement.mode=colocated"});
  await_version(some_version());
  auto found = workers();
  ASSERT_TRUE(found.contains(GetParam()));
  ASSERT_EQ(::kill(found[GetParam()], SIGKILL), 0);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

using System = SystemTest;

TEST_F(System, AnActorThatDiesBeforeItIsReadyIsReplaced) {
  run_as_built();
  run();
  for (auto& [name, pid] : await_workers()) {
    if (name != "trainer")
      ::kill(pid, SIGKILL);
  }
  EXPECT_EQ(current().wait().status, 0);
  expect_whole_run(24);
}

TEST_F(System, AllActorsMayDieAtOnce) {
  run({kSlow});
  await_version(7);
  for (const auto& [name, pid] : workers())
    ::kill(pid, SIGKILL);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

TEST_F(System, AnActorThatHangsIsReplacedAfterItsHeartbeatTimeout) {
  run({kSlow, "transport.heartbeat_timeout=1s"});
  await_version(3);
  auto found = workers();
  ASSERT_TRUE(found.contains("rollout-1"));
  ASSERT_EQ(::kill(found["rollout-1"], SIGSTOP), 0);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_FALSE(is_alive(found["rollout-1"]));
}

TEST_F(System, AnActorThatDiesTooOftenEndsTheRunByName) {
  run({kSlow, "transport.max_restarts=1", "steps=500"});
  for (int i = 0; i < 2; ++i) {
    pid_t pid = 0;
    await([&](const Records& r) {
      const auto found = workers();
      const auto reward = found.find("reward-0");
      pid = reward == found.end() ? 0 : reward->second;
      return pid != 0 && last_version(r) > 0 &&
             count_events<event::ActorDown>(r) == static_cast<std::size_t>(i);
    });
    ASSERT_NE(pid, 0);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
  }
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("reward-0 was lost 2 times"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("signal 9"), std::string::npos) << ended.output;
  expect_clean_log();
}

TEST_F(System, ARunThatWasSuspendedGoesOn) {
  run({kSlow, "transport.heartbeat_timeout=1s"});
  await_version(6);
  const auto found = workers();
  current().signal(SIGSTOP);
  for (const auto& [name, pid] : found)  // The workers give the silent orchestrator up.
    await([pid = pid](const Records&) { return !is_alive(pid); });
  current().signal(SIGCONT);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

class AnOrchestratorThatDies : public SeededSystemTest,
                               public testing::WithParamInterface<const char*> {
 protected:
  void kill_at(std::uint64_t version) {
    await_version(version);
    current().signal(SIGKILL);
    EXPECT_EQ(current().wait().status, -SIGKILL);
    await_no_processes();
  }
};
INSTANTIATE_TEST_SUITE_P(EachPlacement,
                         AnOrchestratorThatDies,
                         testing::Values("separate", "colocated"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(AnOrchestratorThatDies, TakesItsWorkersAlongAndIsResumed) {
  run({kSlow, std::string("placement.mode=") + GetParam()});
  kill_at(some_version());
  const Ended ended = resume().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

TEST_P(AnOrchestratorThatDies, TwiceIsResumedTwice) {
  run({kSlow, std::string("placement.mode=") + GetParam()});
  kill_at(7);
  resume();
  await([](const Records& r) { return count_events<event::Resumed>(r) == 1; });
  kill_at(12);
  const Ended ended = resume().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

TEST_P(AnOrchestratorThatDies, BeforeItsFirstCheckpointIsResumedFromTheStart) {
  run({kSlow, "checkpoint.every=0", std::string("placement.mode=") + GetParam()});
  kill_at(3);
  const Ended ended = resume().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

TEST_F(System, ACutOffRecordAtTheEndOfTheLogIsForgiven) {
  run({kSlow});
  await_version(8);
  current().signal(SIGKILL);
  current().wait();
  const fs::path log = run_dir() / "events.log";
  fs::resize_file(log, fs::file_size(log) - 3);
  const Ended ended = resume().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

TEST_F(System, AnInterruptDrainsAndTheRestIsResumed) {
  run({kSlow});
  await_version(7);
  current().signal(SIGINT);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 130) << ended.output;
  expect_clean_log();
  const auto version = last_version(records());
  EXPECT_LT(version, 24U);
  EXPECT_TRUE(
      fs::exists(run_dir() / fmt::format("checkpoints/step-{:06}/orchestrator.msgpack", version)));
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  expect_whole_run(24);
}

TEST_F(System, AnInterruptOfAColocatedRunDrains) {
  run({kSlow, "placement.mode=colocated"});
  await_version(7);
  current().signal(SIGINT);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 130) << ended.output;
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  expect_whole_run(24);
}

TEST_F(System, AnInterruptBeforeAnyActorIsReadyDrains) {
  run_as_built();
  run();
  await_workers();
  current().signal(SIGINT);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 130) << ended.output;
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  expect_whole_run(24);
}

TEST_F(System, ASecondInterruptStopsAtOnce) {
  run({"synthetic.step_time=1s", "checkpoint.every=1"});  // An update that a drain would wait for.
  await([](const Records& r) {
    for (const auto& record : r) {
      for (const auto& c : record.commands) {
        if (std::holds_alternative<orchestrator::command::Train>(c))
          return true;
      }
    }
    return false;
  });
  current().signal(SIGINT);
  await([](const Records& r) { return count_events<event::StopRequested>(r) == 1; });
  current().signal(SIGINT);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 130) << ended.output;
  EXPECT_EQ(count_events<event::Trained>(records()), 0U);
  EXPECT_EQ(processes(), std::vector<pid_t>{});
  expect_clean_log();
}

TEST_F(System, ATerminationRequestDrainsAsAnInterruptDoes) {
  run({kSlow});
  await_version(3);
  current().signal(SIGTERM);
  EXPECT_EQ(current().wait().status, 130);
  expect_clean_log();
}

TEST_F(System, ATerminalThatClosesDrainsTheRunHoweverOftenItSaysSo) {
  run({kSlow});
  await_version(3);
  current().signal(SIGHUP);
  await([](const Records& r) { return count_events<event::StopRequested>(r) == 1; });
  current().signal(SIGHUP);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 130) << ended.output;
  EXPECT_EQ(ended.output.find("stopped at once"), std::string::npos) << ended.output;
  EXPECT_EQ(count_events<event::Aborted>(records()), 0U);
  expect_clean_log();
}

}  // namespace
}  // namespace temper::test
