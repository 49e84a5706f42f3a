// A real policy at the times of simulated cards, as a user runs it.
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "tests/system/harness.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

namespace temper::test {
namespace {

namespace fs = std::filesystem;

/// The engines of rehearsal_test.cpp keep the time; what learns is a transformer of a few thousand
/// parameters, whose pretraining is soon over.
constexpr std::string_view kTwin = R"(name: twin
hardware: simulated
policy: torch
steps: 4
task: {kind: addition, digits: 1}
model: {hidden: 16, layers: 1, heads: 2, kv_heads: 1, ffn: 32, context: 16}
pretrain: {target_accuracy: 0.15, batch: 64, problems: 100}
sampling: {max_new_tokens: 4}
algorithm:
  groups_per_update: 8
  responses_per_group: 4
  minibatches: 2
  kl: 0.001
placement:
  cards: 6
  rollout_cards: 4
  reference_cards: 1
rollout:
  replicas: 4
  concurrency: 16
reward:
  replicas: 2
transport:
  heartbeat: 100ms
simulation:
  cluster: nvidia-h200
  model: qwen3-1.7b
  prompt: {kind: constant, mean: 200}
  response: {kind: lognormal, mean: 800, p99_over_median: 6, cap: 4096}
  trainer: {micro_batch_tokens: 8192}
)";

class Twin : public NamedRunsTest {
 protected:
  Twin() : NamedRunsTest(kTwin) {}
  /// The base checkpoint is made once in a test, and found by its later runs.
  Temper::Options options() const {
    return {folder(),
            [cache = (folder() / "cache").string()] { ::setenv("TEMPER_CACHE", cache.c_str(), 1); },
            kTemperAsBuilt};
  }
  Ended run_twin(const std::string& name, const Arguments& more) {
    return Temper(arguments(name, more), options()).wait();
  }
  std::vector<nlohmann::json> updates() const {
    std::istringstream lines(read_file(run_folder("a") / "metrics.jsonl").value_or(""));
    std::vector<nlohmann::json> out;
    for (std::string line; std::getline(lines, line);)
      out.push_back(parse_json(line));
    return out;
  }
  void expect_real_updates() const {
    const auto made = updates();
    ASSERT_EQ(made.size(), 4U);
    for (const nlohmann::json& update : made) {
      EXPECT_GT(update["entropy"].get<double>(), 0);
      const double ratio = update["ratio_mean"].get<double>();
      EXPECT_GT(ratio, 0.8);
      EXPECT_LT(ratio, 1.25) << "its samples are its own, a few updates old at most";
      const double right = update["reward"].get<double>() * 32;
      EXPECT_EQ(right, std::round(right)) << "32 answers, each right or wrong";
    }
    EXPECT_NEAR(made[0]["ratio_mean"].get<double>(), 1, 1e-5) << "nothing was trained before";
  }
};

TEST_F(Twin, TrainsForRealAndLeavesTheSameLogWhenRepeatedAndAsProcesses) {
  const Ended first = run_twin("a", {"--driver", "in-process"});
  ASSERT_EQ(first.status, 0) << first.output;
  EXPECT_NE(first.output.find(" simulated hours"), std::string::npos) << first.output;
  expect_real_updates();

  const Ended repeated = run_twin("b", {"--driver", "in-process"});
  ASSERT_EQ(repeated.status, 0) << repeated.output;
  const Ended rehearsal = run_twin("c", {});
  ASSERT_EQ(rehearsal.status, 0) << rehearsal.output;
  EXPECT_GT(log_of("a").size(), 1000U);
  EXPECT_TRUE(log_of("a") == log_of("b"));
  EXPECT_TRUE(log_of("a") == log_of("c"));
  EXPECT_EQ(processes().size(), 0U);
  for (const char* command : {"audit", "replay", "report"}) {
    const Ended ended = temper({command, run_folder("a").string()});
    EXPECT_EQ(ended.status, 0) << ended.output;
  }
}

TEST_F(Twin, ALostWorkerEndsTheRunByName) {
  Temper run(arguments("a", {"--driver", "in-process", "--set", "steps=100000"}), options());
  const fs::path log = run_folder("a") / "metrics.jsonl";
  const RealClock clock;
  std::error_code none_yet;
  while (!run.has_ended() && clock.now() < Time(kPatience) &&
         (fs::file_size(log, none_yet) == 0 || none_yet)) {
    ::poll(nullptr, 0, 10);
  }
  pid_t trainer = 0;
  for (const pid_t pid : processes()) {
    const std::string command = read_file(fmt::format("/proc/{}/cmdline", pid)).value_or("");
    if (command.find("twin-trainer") != std::string::npos)
      trainer = pid;
  }
  ASSERT_NE(trainer, 0);
  ::kill(trainer, SIGKILL);
  const Ended ended = run.wait();
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("content: twin-trainer: killed by signal 9"), std::string::npos)
      << ended.output;
  EXPECT_EQ(processes().size(), 0U);
}

}  // namespace
}  // namespace temper::test
