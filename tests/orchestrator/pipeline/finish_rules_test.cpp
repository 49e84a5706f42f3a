// `rollout.on_new_weights: finish`: what `check` refuses, with place, found, expected and next
// step.
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

/// The issues of a configuration with this text.
std::string finish_issues(const std::string& more) {
  const std::string text = "rollout:\n  on_new_weights: finish\n" + more;
  const LoadedConfig loaded("c.yaml", text, {});
  return render(loaded.issues());
}

void expect_text(const std::string& found, const std::string& expected) {
  EXPECT_NE(found.find(expected), std::string::npos)
      << "expected " << expected << "\nfound " << found;
}

TEST(FinishRules, AcceptSeparateCardsAndRulesThatLimitTheAgeOfWhatRuns) {
  EXPECT_EQ(finish_issues("staleness: {bound: 4}\n"), "");
  for (const char* rule : {"exact", "window", "in_order"})
    EXPECT_EQ(finish_issues("staleness: {bound: 2, rule: " + std::string(rule) + "}\n"), "")
        << rule;
}

TEST(FinishRules, NameTheKeyWhatWasFoundAndWhatIsExpected) {
  for (const std::string rule : {"aggregate", "count", "drop", "wait"}) {
    const std::string found = finish_issues("staleness: {bound: 2, rule: " + rule + "}\n");
    expect_text(found, "c.yaml:2: rollout.on_new_weights: `finish` requires a rule that limits");
    expect_text(found, "found `" + rule + "`, use `exact`");
  }
  for (const std::string mode : {"colocated", "fused", "hybrid"}) {
    expect_text(finish_issues("placement: {mode: " + mode + "}\n"),
                "requires `placement.mode: separate`, found `" + mode + "`");
  }
  expect_text(finish_issues("policy: synthetic\n"), "found `native`, `synthetic`");
  expect_text(finish_issues("  engine: {kind: python, use: \"mine:Engine\"}\n"),
              "found `python`, `torch`");
  expect_text(finish_issues("  agent: {command: [python3, agent.py]}\n"),
              "`finish` does not support an agent");
}

TEST(FinishRules, TheSchedulerKnowsThatResponsesHaveOneVersion) {
  PipelineConfig config;
  EXPECT_FALSE(scheduler_config(resolve(config).value()).one_version);
  config.rollout.on_new_weights = rollout::OnNewWeights::Finish;
  EXPECT_TRUE(scheduler_config(resolve(config).value()).one_version);
}

}  // namespace
}  // namespace temper::orchestrator
