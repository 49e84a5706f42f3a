// Simulated hardware as a user runs it: worker processes and plain objects leave the same log.
#include "tests/system/harness.hpp"

#include <poll.h>
#include <signal.h>

namespace temper::test {
namespace {

namespace fs = std::filesystem;

/// Six cards of an H200 machine, a small model, small batches: a fraction of a second of wall time.
constexpr std::string_view kConfig = R"(name: rehearsal
hardware: simulated
policy: synthetic
steps: 4
algorithm:
  groups_per_update: 8
  responses_per_group: 4
  minibatches: 1
placement:
  cards: 6
  rollout_cards: 4
  reference_on: trainer
rollout:
  replicas: 4
  concurrency: 16
reward:
  replicas: 2
transport:
  heartbeat: 100ms
  actors_per_worker: 3
simulation:
  cluster: nvidia-h200
  model: qwen3-1.7b
  prompt: {kind: constant, mean: 200}
  response: {kind: lognormal, mean: 800, p99_over_median: 6, cap: 4096}
  trainer: {micro_batch_tokens: 8192}
)";

class Rehearsal : public SystemTest {
 protected:
  Rehearsal() { EXPECT_TRUE(write_file_atomically(file(), kConfig)); }
  fs::path file() const { return folder() / "rehearsal.yaml"; }
  fs::path run_folder(const std::string& name) const { return folder() / name; }
  Arguments arguments(const std::string& name, const Arguments& more) const {
    Arguments all{
        "run", file().string(), "--plain", "--set", "run_dir=" + run_folder(name).string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Until the log of run "a" holds something.
  void await_under_way(Temper& run) {
    std::error_code none_yet;
    while (!run.has_ended() &&
           (fs::file_size(run_folder("a") / "events.log", none_yet) == 0 || none_yet)) {
      ::poll(nullptr, 0, 10);
    }
  }
  std::string log_of(const std::string& name) const {
    return read_file(run_folder(name) / "events.log").value_or("");
  }
};

TEST_F(Rehearsal, LeavesTheLogOfAnInProcessRunAndOfItsRepetition) {
  const Ended rehearsal = temper(arguments("a", {}));
  ASSERT_EQ(rehearsal.status, 0) << rehearsal.output;
  const Ended repeated = temper(arguments("b", {"--set", "transport.actors_per_worker=1"}));
  ASSERT_EQ(repeated.status, 0) << repeated.output;
  const Ended in_process = temper(arguments("c", {"--driver", "in-process"}));
  ASSERT_EQ(in_process.status, 0) << in_process.output;
  EXPECT_GT(log_of("a").size(), 1000U);
  EXPECT_TRUE(log_of("a") == log_of("b"));
  EXPECT_TRUE(log_of("a") == log_of("c"));
  EXPECT_EQ(processes().size(), 0U);
}

TEST_F(Rehearsal, ItsLogIsCleanAndReplays) {
  ASSERT_EQ(temper(arguments("a", {})).status, 0);
  const Ended audit = temper({"audit", run_folder("a").string()});
  EXPECT_EQ(audit.status, 0) << audit.output;
  const Ended replay = temper({"replay", run_folder("a").string()});
  EXPECT_EQ(replay.status, 0) << replay.output;
  const Ended report = temper({"report", run_folder("a").string()});
  EXPECT_EQ(report.status, 0) << report.output;
}

TEST_F(Rehearsal, ColocatedRunsAreTheSameInBothHostsToo) {
  const Arguments colocated{"--set",
                            "placement.mode=colocated",
                            "--set",
                            "placement.rollout_cards=0",
                            "--set",
                            "rollout.replicas=2",
                            "--set",
                            "simulation.rollout.kv_share=0.3"};
  const Ended rehearsal = temper(arguments("a", colocated));
  ASSERT_EQ(rehearsal.status, 0) << rehearsal.output;
  Arguments in_process = colocated;
  in_process.insert(in_process.end(), {"--driver", "in-process"});
  ASSERT_EQ(temper(arguments("b", in_process)).status, 0);
  EXPECT_TRUE(log_of("a") == log_of("b"));
  EXPECT_EQ(temper({"audit", run_folder("a").string()}).status, 0);
}

TEST_F(Rehearsal, ALostWorkerEndsTheRunByName) {
  Temper run(arguments("a", {"--set", "steps=100000"}), {folder(), {}});
  await_under_way(run);
  std::vector<pid_t> workers = processes();
  std::erase(workers, run.pid());
  ASSERT_EQ(workers.size(), 3U) << "eight actors, three to a process";
  ::kill(workers.front(), SIGKILL);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("worker-"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("killed by signal 9"), std::string::npos) << ended.output;
  EXPECT_EQ(processes().size(), 0U);
}

TEST_F(Rehearsal, CtrlCEndsItInOrder) {
  Temper run(arguments("a", {"--set", "steps=100000"}), {folder(), {}});
  await_under_way(run);
  run.signal(SIGINT);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.status, 130) << ended.output;
  const Ended audit = temper({"audit", run_folder("a").string()});
  EXPECT_EQ(audit.status, 0) << audit.output;
  EXPECT_EQ(processes().size(), 0U);
}

TEST_F(Rehearsal, TheShippedSupernodeRuns) {
  const fs::path shipped = fs::path(TEMPER_SOURCE_DIR) / "configs/cm384_pangu.yaml";
  const Ended ended = temper({"run",
                              shipped.string(),
                              "--driver",
                              "in-process",
                              "--set",
                              "steps=2",
                              "--set",
                              "run_dir=" + run_folder("a").string()});
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("finished after 2 updates"), std::string::npos) << ended.output;
  EXPECT_EQ(temper({"audit", run_folder("a").string()}).status, 0);
}

TEST_F(Rehearsal, SimulatedRunsAreNotResumed) {
  const Ended ended = temper(arguments("a", {"--resume"}));
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("is not resumed"), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace temper::test
