// The section model.lora: what `check` refuses, with place, found, expected and next step.
#include "orchestrator/pipeline/lora_rules.hpp"

#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/local_memory.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

/// The issues of a configuration with this text.
std::string issues(const std::string& lora, const std::string& more = "") {
  const std::string text = "model:\n  hidden: 64\n  lora: " + lora + "\n" + more;
  const LoadedConfig loaded("c.yaml", text, {});
  return render(loaded.issues());
}

void expect_issue(const std::string& found, const std::string& expected) {
  EXPECT_NE(found.find(expected), std::string::npos)
      << "expected " << expected << "\nfound " << found;
}

TEST(LoraRules, AcceptTheDefaultsAndAnyLinearLayerOfABlock) {
  EXPECT_EQ(issues("{}"), "");
  EXPECT_EQ(issues("{rank: 4, alpha: 4, targets: [q_proj, down_proj]}"), "");
  EXPECT_EQ(issues("null"), "");
}

TEST(LoraRules, NameTheKeyWhatWasFoundAndWhatIsExpected) {
  expect_issue(issues("{rank: 33}"),
               "c.yaml:3: model.lora.rank: must be at most 32, the smaller side of k_proj");
  expect_issue(issues("{rank: 33}"), "found 33; lower the rank or remove the target");
  expect_issue(issues("{rank: 0}"), "c.yaml:3: model.lora.rank: ");
  expect_issue(issues("{alpha: 0}"), "c.yaml:3: model.lora.alpha: ");
  expect_issue(issues("{targets: []}"), "model.lora.targets: expected at least one of q_proj");
  expect_issue(issues("{targets: [query]}"), "found \"query\"");
  expect_issue(issues("{targets: [q_proj, q_proj]}"), "q_proj is repeated; remove one");
  expect_issue(issues("{targets: [lm_head]}"), "lm_head can have no adapter");
  expect_issue(issues("{r: 8}"), "model.lora.r");
}

TEST(LoraRules, RequireRolesThatKnowAdapters) {
  const auto served_by = [](const std::string& kind) {
    return "rollout:\n  engine: {kind: " + kind +
           ", start: \"serve {model} --host {host} --port {port}\"}\n";
  };
  EXPECT_EQ(issues("{}", served_by("vllm")), "");
  EXPECT_EQ(issues("{}", served_by("sglang")), "");
  expect_issue(issues("{}", served_by("openai")),
               "expected `native`, `vllm`, `sglang`, or `python` with use: temper.torch:Engine");
  expect_issue(issues("{}", served_by("openai")),
               "found `openai`; use one of these or remove model.lora");
  expect_issue(issues("{}", served_by("vllm") + "placement: {mode: colocated}\n"),
               "requires exclusive cards for a server (`placement.mode: separate`), found "
               "`colocated`");
  const std::string own = "trainer:\n  engine: {kind: python, use: \"mine:Trainer\"}\n";
  expect_issue(issues("{}", own), "found `python` with use: mine:Trainer");
  EXPECT_EQ(issues("{}", "trainer:\n  engine: {kind: python, use: \"temper.torch:Trainer\"}\n"),
            "");
  expect_issue(issues("{}", "policy: synthetic\n"), "requires `policy: torch`");
}

constexpr std::string_view kSimulated = R"(hardware: simulated
policy: synthetic
placement: {cards: 6, rollout_cards: 4, reference_cards: 1}
rollout: {replicas: 4, concurrency: 16}
simulation:
  cluster: nvidia-h200
  prompt: {kind: constant, mean: 200}
  response: {kind: constant, mean: 800}
)";

TEST(LoraRules, CompareTargetsWithTheSimulatedModel) {
  const auto simulated = [](const std::string& lora, const std::string& model) {
    return issues(lora, std::string(kSimulated) + "  model: " + model + "\n");
  };
  EXPECT_EQ(simulated("{}", "qwen3-1.7b"), "");
  EXPECT_EQ(simulated("{rank: 8, targets: [o_proj]}", "qwen3-1.7b"), "");
  const std::string latent = simulated("{targets: [q_proj]}", "deepseek-v2-2-layers");
  expect_issue(latent, "c.yaml:3: model.lora.targets: ");
  expect_issue(latent, "has no q_proj; nearest: q_a_proj and q_b_proj");
  EXPECT_EQ(simulated("{targets: [q_b_proj, gate_proj]}", "deepseek-v2-2-layers"), "");
  expect_issue(simulated("{rank: 2000}", "qwen3-1.7b"), "model.lora.rank: must be at least 1");
}

TEST(LoraRules, RefuseATwin) {
  std::string text(kSimulated);
  text.replace(text.find("synthetic"), 9, "torch");
  expect_issue(issues("{}", text + "  model: qwen3-1.7b\n"), "not supported in a twin");
}

double bytes_of(const PipelineConfig& c, std::string_view actor, std::string_view what) {
  const LocalLedger ledger = local_ledger(c).value();
  double sum = 0;
  for (const CardLedger& card : ledger.cards) {
    for (const LocalBytes& part : card.parts)
      sum += part.actor == actor && part.what == what ? part.bytes : 0;
  }
  return sum;
}

TEST(LoraRules, TheLedgerHasNoGradientsOrMomentsOfFrozenWeights) {
  PipelineConfig full;
  full.model.hidden = 256;
  full.model.layers = 4;
  full.model.ffn = 512;
  PipelineConfig lora = full;
  lora.model.lora = actors::LoraConfig{.rank = 2, .alpha = 4, .targets = {"q_proj"}};
  // 4 layers, A [2, 256] and B [256, 2].
  const double adapter = 4.0 * 4 * 2 * 2 * 256;
  const double w = bytes_of(full, "trainer", "weights");
  EXPECT_EQ(bytes_of(lora, "trainer", "weights"), w + adapter);
  EXPECT_EQ(bytes_of(lora, "trainer", "gradients"), adapter);
  EXPECT_EQ(bytes_of(lora, "trainer", "optimizer"), 2 * adapter);
  EXPECT_LT(bytes_of(lora, "trainer", "activations"), bytes_of(full, "trainer", "activations"));
  EXPECT_EQ(bytes_of(lora, "rollout-0", "weights"), w + adapter);
  EXPECT_EQ(bytes_of(lora, "rollout-0", "next version and its image"), 2 * adapter);
  EXPECT_EQ(bytes_of(lora, "reference-0", "weights"), w);
  EXPECT_EQ(local_ledger(lora).value().host, 2 * adapter) << "two images";
}

}  // namespace
}  // namespace temper::orchestrator
