// Keys of `simulation` and `payloads` without effect: each is rejected by name, and accepted where
// it counts.
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace temper::orchestrator {
namespace {

/// `section`: lines of `simulation` in flow style.
LoadedConfig with(const std::string& section, const std::string& model = "qwen3-30b-a3b") {
  const std::string text =
      "hardware: simulated\npolicy: synthetic\n"
      "placement: {cards: 16, rollout_cards: 8, reference_cards: 4}\n"
      "simulation:\n  cluster: cm384\n  model: " +
      model + "\n  " + section + "\n";
  const std::vector<std::string> fits{
      "simulation.rollout.ep=16", "simulation.trainer.ep=8", "simulation.trainer.tp=4"};
  return LoadedConfig("c.yaml", text, fits);
}

std::string issues(const std::string& section) {
  return render(with(section).issues());
}

void expect_only_with(const std::string& section, const std::string& key, const std::string& with) {
  EXPECT_EQ(issues(section),
            "c.yaml:7: simulation." + key + ": used only with " + with + "; remove it, or set " +
                with + "\n");
}

TEST(UnusedKeys, OfLoadsOfExpertsAreRejected) {
  for (const std::string section : {"experts", "trainer.experts"}) {
    const auto expect = [&](const std::string& keys, const char* name, const std::string& with) {
      const std::string inner = "experts: {" + keys + "}";
      expect_only_with(
          section == "experts" ? inner : "trainer: {" + inner + "}", section + "." + name, with);
    };
    expect("exponent: 0.6", "exponent", "`loads: zipf`");
    expect("loads: drifting, exponent: 0.6", "exponent", "`loads: zipf`");
    expect("loads: zipf, spread: 0.6", "spread", "`loads: drifting`");
    expect("drift: 0.1", "drift", "`loads: drifting` or `loads: zipf`");
    expect("seed: 2", "seed", "`loads: drifting`, `loads: zipf` or `sequence_spread`");
    expect("loads: zipf, trace: x.csv", "trace", "`loads: trace`");
    expect("loads: zipf, memory: 0.5", "memory", "`placement: predicted`");
    expect("loads: zipf, horizon: 5", "horizon", "`placement: predicted`");
    expect("loads: zipf, loss_strength: 4", "loss_strength", "`sequence_spread`");
  }
  EXPECT_EQ(issues("experts: {loads: drifting, spread: 0.6, drift: 0.1, seed: 2, placement: "
                   "predicted, memory: 0.5, horizon: 5, sequence_spread: 0.3, loss_strength: 4}"),
            "");
  EXPECT_EQ(issues("experts: {loads: zipf, exponent: 0.6, drift: 0.1, seed: 2}"), "");
  EXPECT_EQ(issues("experts: {sequence_spread: 0.3, seed: 2}"), "");
}

TEST(UnusedKeys, OfLoadsBesideATraceAreRejected) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "loads.csv").string();
  std::string row = "1";
  for (int expert = 1; expert < 128; ++expert)
    row += ",1";
  ASSERT_TRUE(write_file_atomically(file, row + "\n" + row + "\n"));
  const std::string trace = "experts: {loads: trace, trace: " + file;
  EXPECT_EQ(issues(trace + "}"), "");
  expect_only_with(trace + ", exponent: 0.6}", "experts.exponent", "`loads: zipf`");
  expect_only_with(trace + ", spread: 0.6}", "experts.spread", "`loads: drifting`");
  EXPECT_EQ(issues("trainer: {" + trace + "}}"), "");
  const auto resolved = resolve(with("trainer: {" + trace + "}}").config());
  ASSERT_TRUE(resolved) << resolved.error().context;
  EXPECT_TRUE(resolved->simulation->expert_trace.empty());
  EXPECT_EQ(resolved->simulation->trainer_expert_trace.size(), 128U);
}

TEST(UnusedKeys, OfExchangesThatOnlyTrainingHasAreRejected) {
  EXPECT_EQ(issues("experts: {sequence_spread: 0.3}\n  trainer: {experts: {loads: zipf}}"),
            "c.yaml:7: simulation.experts.sequence_spread: used only without "
            "`simulation.trainer.experts`; remove it, or remove `simulation.trainer.experts`\n");
  EXPECT_EQ(issues("experts: {loads: zipf}\n  trainer: {experts: {sequence_spread: 0.3}}"), "");
}

TEST(UnusedKeys, OfLengthsAreRejected) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "lengths.json").string();
  ASSERT_TRUE(write_file_atomically(file, "[120, 4500]"));
  const std::string trace = "prompt: {kind: trace, trace: " + file;
  EXPECT_EQ(issues(trace + ", cap: 1000}"), "");
  expect_only_with(trace + ", mean: 500}", "prompt.mean", "`kind: lognormal` or `kind: constant`");
  expect_only_with(trace + ", p99_over_median: 3}", "prompt.p99_over_median", "`kind: lognormal`");
  expect_only_with(trace + ", width: 3}", "prompt.width", "`kind: histogram`");
  expect_only_with("response: {kind: histogram, weights: [1], sibling_correlation: 0.3}",
                   "response.sibling_correlation",
                   "`kind: lognormal`");
  EXPECT_EQ(issues("response: {kind: constant, p99_over_median: 3, sibling_correlation: 0.3}"), "");
  expect_only_with("response: {kind: histogram, weights: [1], mean: 5}",
                   "response.mean",
                   "`kind: lognormal` or `kind: constant`");
  expect_only_with(
      "tools: {turn: {kind: constant, width: 3}}", "tools.turn.width", "`kind: histogram`");
  // The configuration of a run has the defaults of each section.
  const LoadedConfig loaded = with("tools: {turn: {kind: histogram, weights: [1], width: 3}}");
  EXPECT_EQ(render(LoadedConfig("run.yaml", to_yaml(loaded.config()), {}).issues()), "");
}

TEST(UnusedKeys, OfFaultsBesideATraceAreRejected) {
  for (const std::string key : {"rate: 1", "card_mtbf: 1h", "seed: 2"}) {
    EXPECT_EQ(issues("faults: {trace: plan.csv, " + key + "}"),
              "c.yaml:7: simulation.faults." + key.substr(0, key.find(':')) +
                  ": used only without `trace`; remove it, or remove `trace`\n");
  }
  EXPECT_EQ(issues("faults: {rate: 1, card_mtbf: 1h, seed: 2}"), "");
}

TEST(CapacityFactor, NeedsExperts) {
  EXPECT_EQ(issues("trainer: {capacity_factor: 1.25}"), "");
  EXPECT_EQ(render(with("trainer: {capacity_factor: 1.25}", "qwen3-1.7b").issues()),
            "c.yaml:7: simulation.trainer.capacity_factor: Qwen3-1.7B has no routed experts; "
            "remove the key\n");
  EXPECT_EQ(issues("trainer: {capacity_factor: 0}"),
            "c.yaml:7: simulation.trainer.capacity_factor: must be between 0.01 and 1000000, "
            "found `0`\n");
}

TEST(UnusedKeys, OfPayloadsAreRejected) {
  const auto issues = [](const std::string& text) {
    return render(LoadedConfig("c.yaml", text, {}).issues());
  };
  for (const std::string key : {"redis", "redis_ca"}) {
    EXPECT_EQ(issues("payloads: {" + key + ": \"a:1\"}\n"),
              "c.yaml:1: payloads." + key +
                  ": used only with `store: redis`; remove it, or set `store: redis`\n");
  }
  const std::string redis = "payloads: {store: redis, redis: \"rediss://a:1\", redis_ca: a}\n";
  EXPECT_EQ(issues(redis), "");
  const std::string found = issues("hardware: simulated\n" + redis);
  EXPECT_NE(found.find("c.yaml:2: payloads.store: `redis` requires `hardware: local`; "),
            std::string::npos)
      << found;
}

}  // namespace
}  // namespace temper::orchestrator
