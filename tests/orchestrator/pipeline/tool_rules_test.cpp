// `simulation.tools`: what `check` rejects, with place, found and expected, and what a run gets.
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

LoadedConfig with_tools(const std::string& tools) {
  const std::string text =
      "hardware: simulated\npolicy: synthetic\n"
      "placement: {cards: 4, rollout_cards: 2, reference_cards: 1}\n"
      "simulation:\n  cluster: nvidia-h200\n  model: qwen3-1.7b\n  tools: {" +
      tools + "}\n";
  return LoadedConfig("c.yaml", text, {});
}

void expect_issue(const std::string& tools, const std::string& expected) {
  const std::string found = render(with_tools(tools).issues());
  EXPECT_NE(found.find(expected), std::string::npos)
      << "expected " << expected << "\nfound " << found;
}

TEST(ToolRules, AcceptDistributionsAndTheirDefaults) {
  EXPECT_EQ(render(with_tools("").issues()), "");
  EXPECT_EQ(render(with_tools("latency: {mean: 5min}, turn: {kind: constant, mean: 50}").issues()),
            "");
}

TEST(ToolRules, NameTheKeyOfADistributionThatCannotBe) {
  expect_issue("latency: {mean: 1h}",
               "simulation.tools.latency.mean: a mean of 1h exceeds the cap of 10min");
  expect_issue("latency: {mean: 1500us, cap: 1500us}", "exceeds the cap of 1500us");
  expect_issue("latency: {p99_over_median: 1e7}", "simulation.tools.latency.p99_over_median: ");
  expect_issue("turn: {mean: 500, cap: 100}", "simulation.tools.turn.mean: ");
  expect_issue("result: {kind: trace}", "simulation.tools.result.trace: required by `kind: trace`");
  expect_issue("turn: {trace: turns.json}",
               "simulation.tools.turn.trace: used only with `kind: trace`; remove it, or set "
               "`kind: trace`");
  expect_issue("result: {kind: constant, weights: [1, 2]}",
               "simulation.tools.result.weights: used only with `kind: histogram`; remove it, or "
               "set `kind: histogram`");
  expect_issue("latency: {trace: missing.json}",
               "simulation.tools.latency.trace: missing.json does not exist");
}

TEST(ToolRules, RejectTheKeysOfADistributionBesideATrace) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "latencies.json").string();
  ASSERT_TRUE(write_file_atomically(file, "[120, 4500]"));
  for (const std::string key : {"mean: 60s", "p99_over_median: 2", "cap: 20min"}) {
    expect_issue("latency: {trace: " + file + ", " + key + "}",
                 "simulation.tools.latency." + key.substr(0, key.find(':')) +
                     ": used only without `trace`; remove it, or remove `trace`");
  }
  // As in the configuration of a run, which has every key.
  const LoadedConfig loaded = with_tools("latency: {trace: " + file + "}");
  EXPECT_EQ(render(LoadedConfig("run.yaml", to_yaml(loaded.config()), {}).issues()), "");
}

TEST(ToolRules, ReadTracesForTheRun) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "latencies.json").string();
  ASSERT_TRUE(write_file_atomically(file, "[120, 4500]"));
  const LoadedConfig loaded = with_tools("latency: {trace: " + file + "}");
  ASSERT_EQ(render(loaded.issues()), "");
  const auto resolved = resolve(loaded.config());
  ASSERT_TRUE(resolved) << resolved.error().context;
  EXPECT_EQ(resolved->simulation->config.tools->latency.milliseconds,
            (std::vector<std::int32_t>{120, 4500}));
}

}  // namespace
}  // namespace temper::orchestrator
