// The section algorithm.critic: what `check` refuses, and what a critic takes of memory.
#include "orchestrator/pipeline/critic_rules.hpp"

#include "actors/model_folder/layout.hpp"
#include "actors/task/tokenizer.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/local_memory.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

/// The issues of a configuration with this `algorithm` section.
std::string issues_of(const std::string& algorithm, const std::string& more = "") {
  const LoadedConfig loaded("c.yaml", "algorithm: " + algorithm + "\n" + more, {});
  return render(loaded.issues());
}

void expect_part(const std::string& found, const std::string& expected) {
  EXPECT_NE(found.find(expected), std::string::npos)
      << "expected " << expected << "\nfound " << found;
}

TEST(CriticRules, AcceptGroupsOfOneOnlyWithACritic) {
  EXPECT_EQ(issues_of("{name: ppo_critic, responses_per_group: 1}"), "");
  EXPECT_EQ(issues_of("{advantage_mean: critic, advantage_std: none, responses_per_group: 1}"), "");
  for (const char* name : {"grpo", "ppo", "rloo", "reinforce_pp"}) {
    expect_part(issues_of(std::string("{name: ") + name + ", responses_per_group: 1}"),
                "algorithm.responses_per_group: must be at least 2, because an advantage is "
                "relative to the group; found 1; `algorithm.name: ppo_critic` needs only one");
  }
}

TEST(CriticRules, NameTheKeyWhatWasFoundAndWhatIsExpected) {
  expect_part(issues_of("{name: grpo, advantage_mean: critic}"),
              "must be `batch` or `none` with a critic, found `group`");
  expect_part(issues_of("{name: ppo_critic, filter_equal_rewards: true}"),
              "must be false with a critic: a group with equal rewards has a gradient");
  expect_part(issues_of("{name: ppo_critic}", "model: {lora: {}}\n"),
              "remove model.lora, or use an algorithm without a critic");
  expect_part(issues_of("{name: ppo_critic, minibatches: 1}", "stragglers: {prepare: true}\n"),
              "(advantage_mean: critic, advantage_std: batch); expected `group` for both");
  expect_part(issues_of("{name: ppo_critic, critic: {kl: 0.1}}", "reference: {replicas: 0}\n"),
              "and algorithm.critic.kl 0.1");
  expect_part(issues_of("{name: ppo_critic, critic: {gae_lambda: 1.5}}"),
              "algorithm.critic.gae_lambda");
  expect_part(issues_of("{name: ppo_critic, critic: {value_clip: -1}}"),
              "algorithm.critic.value_clip");
}

TEST(CriticRules, WithoutACriticNeedNoReferenceForItsKl) {
  EXPECT_EQ(issues_of("{name: grpo, critic: {kl: 0.1}}", "reference: {replicas: 0}\n"), "");
}

double trainer_bytes(const PipelineConfig& c, std::string_view what) {
  const LocalLedger ledger = local_ledger(c).value();
  double sum = 0;
  for (const CardLedger& card : ledger.cards) {
    for (const LocalBytes& part : card.parts)
      sum += part.actor == "trainer" && part.what == what ? part.bytes : 0;
  }
  return sum;
}

TEST(CriticRules, TheLedgerHasASecondNetworkButOneSetOfActivations) {
  PipelineConfig alone;
  PipelineConfig both = alone;
  both.algorithm.name = trainer::AlgorithmName::PpoCritic;
  const auto layout =
      actors::Layout::make(alone.model, actors::Tokenizer::for_task(alone.task).vocabulary());
  const double critic = 4.0 * static_cast<double>(layout.value().of_critic().size());
  EXPECT_EQ(trainer_bytes(both, "weights"), trainer_bytes(alone, "weights") + critic);
  EXPECT_EQ(trainer_bytes(both, "gradients"), trainer_bytes(alone, "gradients") + critic);
  EXPECT_EQ(trainer_bytes(both, "optimizer"), trainer_bytes(alone, "optimizer") + 2 * critic);
  EXPECT_EQ(trainer_bytes(both, "activations"), trainer_bytes(alone, "activations"));
}

}  // namespace
}  // namespace temper::orchestrator
