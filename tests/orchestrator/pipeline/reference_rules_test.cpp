// Rules of a simulated reference whose model is not the policy's.
#include "orchestrator/pipeline/reference_rules.hpp"

#include "core/files.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/switch_plan.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

std::string broken(const PipelineConfig& c) {
  std::string out;
  for (const BrokenRule& rule : validate(c))
    out += rule.keys.front() + ": " + rule.message + "\n";
  return out;
}

/// A student of 0.5B with a teacher on one card (two devices of 64 GB).
PipelineConfig with_teacher(const std::string& model) {
  PipelineConfig c = temper::testing::small_pipeline();
  c.simulation.reference.model = model;
  return c;
}

/// The policy of small_pipeline() under another name.
std::string renamed(const test::TemporaryFolder& folder) {
  std::string text = read_file(TEMPER_SOURCE_DIR "/configs/models/qwen2.5-0.5b.yaml").value();
  constexpr std::string_view kName = "Qwen2.5-0.5B";
  text.replace(text.find(kName), kName.size(), "Twin");
  EXPECT_TRUE(write_file_atomically(folder / "twin.yaml", text));
  return (folder / "twin.yaml").string();
}

TEST(SimulatedTeacher, IsTheModelThatTheReferenceAloneHas) {
  const auto pipeline = resolve(with_teacher("qwen2.5-7b"));
  ASSERT_TRUE(pipeline) << pipeline.error().context;
  EXPECT_EQ(broken(with_teacher("qwen2.5-7b")), "");
  for (const ActorSpec& slot : pipeline->slots) {
    const bool scores = slot.role == actors::RoleKind::Reference;
    EXPECT_EQ(actor_settings(*pipeline, slot).model.name, scores ? "Qwen2.5-7B" : "Qwen2.5-0.5B")
        << slot.name;
  }
}

TEST(SimulatedTeacher, OfThePolicysDimensionsIsNoOtherModel) {
  const test::TemporaryFolder folder;
  for (const std::string& model : {std::string("qwen2.5-0.5b"), renamed(folder), std::string()})
    EXPECT_FALSE(resolve(with_teacher(model))->simulation->reference_model) << model;
}

TEST(SimulatedTeacher, WithoutADescriptionIsRefused) {
  const std::string text = broken(with_teacher("qwen2.5-8b"));
  EXPECT_EQ(text.find("simulation.reference.model: "), 0U) << text;
}

TEST(SimulatedTeacher, ThatDoesNotFitIsRefusedWithItsShapeAndTheMemory) {
  const std::string text = broken(with_teacher("qwen2.5-72b"));
  EXPECT_NE(text.find("reference cards in phase score need "), std::string::npos) << text;
  EXPECT_NE(text.find(" GiB per device, but it has 59.60 GiB of memory: reference weights "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("(reference: Qwen2.5-72B with tp 1, pp 1, ep 1, cp 1 on 2 devices of cm384)"),
            std::string::npos)
      << text;
}

TEST(SimulatedTeacher, ThatFitsInAnotherLayoutIsRefusedWithIt) {
  PipelineConfig c = with_teacher("qwen3-32b");  // 65.5 GB, one stage of which fits a device.
  const std::string text = broken(c);
  EXPECT_NE(text.find("nearest: simulation.reference.pp = 2"), std::string::npos) << text;
  c.simulation.reference.pp = 2;
  EXPECT_EQ(broken(c), "");
  c.simulation.reference = {.model = "qwen3-32b", .tp = 2, .pp = {}, .ep = {}, .cp = {}};
  EXPECT_EQ(broken(c), "");
}

TEST(SimulatedTeacher, OnTimeSharedCardsMovesItsOwnWeights) {
  PipelineConfig c = with_teacher("qwen2.5-7b");
  c.placement.mode = PlacementMode::Fused;
  c.placement.rollout_cards = c.placement.reference_cards = 0;
  ASSERT_EQ(broken(c), "");
  const auto onload = [](const PipelineConfig& config) {
    const SwitchPlan plan = predict_switch(simulated_placement(resolve(config).value()));
    for (const PredictedState& state : plan.to_training) {
      if (state.state == "onload_reference")
        return state.seconds;
    }
    return 0.0;
  };
  const double large = onload(c);
  c.simulation.reference.model.clear();
  EXPECT_GT(large, 10 * onload(c));
  EXPECT_GT(onload(c), 0);
}

TEST(SimulatedTeacher, ScoresALeaseAtOnceOrOnTimeSharedCardsItsShareOfABatch) {
  PipelineConfig c = with_teacher("qwen2.5-7b");
  const auto per_pass = [&](std::int64_t batch) {
    return scoring_passes(c, resolve_placement(c), batch).responses;
  };
  const auto passes = [&](std::int64_t batch) {
    return scoring_passes(c, resolve_placement(c), batch).count;
  };
  EXPECT_EQ(per_pass(32), 32);
  EXPECT_EQ(per_pass(8192), scheduler_config(resolve(c).value()).score_batch);
  EXPECT_EQ(passes(32), 1);
  EXPECT_EQ(passes(8192), 32);
  c.placement.mode = PlacementMode::Fused;
  c.placement.rollout_cards = c.placement.reference_cards = 0;
  EXPECT_EQ(per_pass(8192), 8192);
  c.reference.replicas = 2;
  EXPECT_EQ(per_pass(8192), 4096);
  EXPECT_EQ(passes(8192), 1);
  c.reference.replicas = 3;
  EXPECT_EQ(per_pass(6), 2);
}

TEST(SimulatedTeacher, ALayoutThatItsCardsDoNotAllowIsRefused) {
  PipelineConfig c = with_teacher("qwen2.5-7b");
  c.simulation.reference.tp = 4;
  EXPECT_EQ(broken(c),
            "simulation.reference.tp: found 4, which does not divide Qwen2.5-7B on the 2 devices "
            "of a reference; the largest one below that does: 2\n");
  c.simulation.reference.tp = 2;
  c.simulation.reference.ep = 2;
  EXPECT_EQ(broken(c),
            "simulation.reference: ep = 2, but Qwen2.5-7B has no experts; nearest: ep = 1\n");
}

TEST(SimulatedTeacher, WithOtherExpertsThanATraceIsRefused) {
  const test::TemporaryFolder folder;
  std::string header, row;
  for (int expert = 0; expert < 128; ++expert) {
    header += (expert > 0 ? ",e" : "e") + std::to_string(expert);
    row += expert > 0 ? ",1" : "1";
  }
  EXPECT_TRUE(write_file_atomically(folder / "loads.csv", header + "\n" + row + "\n"));
  PipelineConfig c = with_teacher("deepseek-v2-2-layers");
  c.simulation.model = "qwen3-30b-a3b";
  c.simulation.experts.loads = actors::ExpertLoadKind::Trace;
  c.simulation.experts.trace = (folder / "loads.csv").string();
  const std::string text = broken(c);
  EXPECT_NE(text.find("has 160 experts, but `simulation.experts.trace` has the loads of 128"),
            std::string::npos)
      << text;
}

TEST(SimulatedTeacher, IsNamedByTheKeyOfSimulations) {
  PipelineConfig c = temper::testing::small_pipeline();
  c.reference.model = "teacher";
  EXPECT_NE(broken(c).find("with `hardware: simulated`, `simulation.reference.model` names"),
            std::string::npos);
}

TEST(SimulatedTeacher, OfDistillationMayHaveThePolicysModel) {
  PipelineConfig c = temper::testing::small_pipeline();
  c.policy = actors::PolicyKind::Torch;
  c.algorithm.name = trainer::AlgorithmName::Opd;
  c.algorithm.filter_equal_rewards = false;
  EXPECT_EQ(broken(c).find("must name the teacher"), std::string::npos) << broken(c);
}

}  // namespace
}  // namespace temper::orchestrator
