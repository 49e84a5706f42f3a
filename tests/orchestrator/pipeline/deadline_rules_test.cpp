// Deadlines that no run on the configured cards can meet: what `check` rejects.
#include "orchestrator/pipeline/load.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace temper::orchestrator {
namespace {

std::string issues_of(const std::string& placement, const std::vector<std::string>& sets) {
  const std::string text =
      "hardware: simulated\npolicy: synthetic\n"
      "placement: {" +
      placement + "}\nsimulation: {cluster: nvidia-h200, model: qwen3-1.7b}\n";
  return render(LoadedConfig("c.yaml", text, sets).issues());
}

constexpr const char* kSeparate = "cards: 4, rollout_cards: 2, reference_cards: 1";
constexpr const char* kFused = "mode: fused, cards: 4";

TEST(DeadlineRules, AcceptTheDefaultsWithEveryShippedFramework) {
  for (const char* framework : {"ideal", "nemo-rl", "verl", "checkpoint-engine", "cann-recipes"}) {
    const std::string set = std::string("simulation.framework=") + framework;
    EXPECT_EQ(issues_of(kSeparate, {set}), "");
    EXPECT_EQ(issues_of(kFused, {set}), "");
  }
}

TEST(DeadlineRules, AFrameworkSlowerThanTheDeadlineOfWeightsIsNamed) {
  EXPECT_EQ(issues_of(kSeparate, {"deadlines.weights=100ms"}), "");
  for (const char* placement : {kSeparate, kFused}) {
    const std::string issues =
        issues_of(placement, {"simulation.framework=verl", "deadlines.weights=100ms"});
    EXPECT_NE(issues.find("deadlines.weights: "), std::string::npos) << issues;
    EXPECT_NE(issues.find("with `simulation.framework: verl`, found a deadline of 100ms"),
              std::string::npos)
        << issues;
    EXPECT_NE(issues.find("nearest: `deadlines.weights: 2s`"), std::string::npos) << issues;
    EXPECT_EQ(issues_of(placement, {"simulation.framework=verl", "deadlines.weights=2s"}), "");
  }
}

TEST(DeadlineRules, AnActionOfARoleSwitchSlowerThanItsDeadlineIsNamed) {
  const std::string issues =
      issues_of(kFused, {"simulation.framework=cann-recipes", "deadlines.switching=100ms"});
  EXPECT_NE(issues.find("deadlines.switching: `"), std::string::npos) << issues;
  EXPECT_NE(issues.find("of a role switch takes "), std::string::npos) << issues;
  EXPECT_EQ(issues_of(kSeparate, {"deadlines.switching=100ms"}), "") << "no role switch";
}

}  // namespace
}  // namespace temper::orchestrator
