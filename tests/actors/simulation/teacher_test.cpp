// A simulated reference whose model is not the policy's.
#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_reference.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

using testing::Driven;

sim_hw::ModelSpec model(std::string_view name) {
  return *sim_hw::Catalog::shipped().model(name).value();
}

/// A trainer and a fused reference on 8 cards, of 7B.
SimulatedPlacement fused() {
  SimulatedPlacement p;
  p.run = testing::settings_of("cm384", "qwen2.5-7b");
  p.run.config.trainer = {.tp = 2, .pp = 2, .micro_batch_tokens = 8192};
  p.run.config.response.cap = Tokens(4096);
  p.run.config.rollout.kv_share = 0.5;
  p.mode = PlacementMode::Fused;
  p.rollout_cards = p.reference_cards = 8;
  p.engines = 2;
  p.concurrency = 64;
  p.reference = ReferencePlace::InTurn;
  return p;
}

SimulatedPlacement with_teacher(sim_hw::ModelSpec teacher) {
  SimulatedPlacement p = fused();
  p.run.reference_model = std::move(teacher);
  return p;
}

sim_hw::ModelSpec of_layers(std::int64_t times) {
  sim_hw::ModelSpec model = fused().run.model;
  model.layers *= times;
  return model;
}

ReferencePass pass(const SimulatedPlacement& p) {
  return ReferenceModel(one_reference(p)).pass(std::vector<Tokens>(64, Tokens(4096)));
}

TEST(Teacher, OfThePolicysModelHasTheSameCosts) {
  const SimulatedPlacement alone = fused(), named = with_teacher(fused().run.model);
  EXPECT_EQ(pass(alone).seconds, pass(named).seconds);
  EXPECT_EQ(pass(alone).flops, pass(named).flops);
  EXPECT_EQ(pass(alone).sent.total(), pass(named).sent.total());
  const auto phases = memory_phases(alone).value(), same = memory_phases(named).value();
  ASSERT_EQ(phases.size(), same.size());
  for (std::size_t i = 0; i < phases.size(); ++i) {
    EXPECT_EQ(phases[i].device(), same[i].device()) << phases[i].phase;
    EXPECT_EQ(phases[i].host(), same[i].host()) << phases[i].phase;
    EXPECT_EQ(phases[i].text(), same[i].text());
  }
}

TEST(Teacher, OfTwiceTheLayersHasTwiceTheirWeightsAndTime) {
  const auto weights = [](std::int64_t times) {
    return reference_memory(one_reference(with_teacher(of_layers(times)))).device.weights;
  };
  // One more 7B of layers each; embeddings and head stay.
  EXPECT_NEAR(weights(3) - weights(2), weights(2) - weights(1), 1);
  EXPECT_GT(weights(2), 1.8 * weights(1));
  EXPECT_LT(weights(2), 2 * weights(1));
  const double once = pass(with_teacher(of_layers(1))).seconds;
  const double twice = pass(with_teacher(of_layers(2))).seconds;
  EXPECT_GT(twice, 1.8 * once);
  EXPECT_LT(twice, 2.1 * once);
  const double flops = pass(with_teacher(of_layers(1))).flops;
  EXPECT_GT(pass(with_teacher(of_layers(2))).flops, 1.8 * flops);
}

TEST(Teacher, LeavesTheOtherRolesAsTheyAre) {
  const SimulatedPlacement alone = fused(), larger = with_teacher(of_layers(2));
  EXPECT_EQ(trainer_memory(alone.run).device.total(), trainer_memory(larger.run).device.total());
  EXPECT_EQ(rollout_memory(switching_engine(alone)).device.total(),
            rollout_memory(switching_engine(larger)).device.total());
  EXPECT_EQ(switching_engine(larger).model.layers, alone.run.model.layers);
  EXPECT_EQ(one_reference(larger).model.layers, 2 * alone.run.model.layers);
  SimulatedRun trainer = larger.run;
  look_at(trainer, RoleKind::Trainer);
  EXPECT_EQ(trainer.model.layers, alone.run.model.layers);
}

TEST(Teacher, IsInTheLedgersOfItsPhases) {
  const SimulatedPlacement p = with_teacher(of_layers(2));
  const double own = reference_memory(one_reference(p)).device.weights;
  const auto phases = memory_phases(p).value();
  std::size_t on_devices = 0;
  for (const PhaseLedger& phase : phases) {
    const ActorMemory& reference = phase.parts.at(2).memory;
    on_devices += reference.device.weights > 0 ? 1 : 0;
    EXPECT_TRUE(reference.device.weights == own || reference.host.weights == own) << phase.phase;
  }
  EXPECT_EQ(on_devices, 2U);  // onload_reference, score
}

TEST(Teacher, MovesItsOwnWeightsOnTimeSharedCards) {
  const auto onload = [](const SimulatedPlacement& p) {
    SimulatedReference reference(one_reference(p));
    Driven d(reference);
    EXPECT_TRUE(d.start());
    EXPECT_TRUE(d.run());
    EXPECT_TRUE(d.send(Switch{SwitchAction::OnloadReference}));
    EXPECT_TRUE(d.run());
    return d.all<Switched>().at(0).second.cost;
  };
  const SwitchCost small = onload(fused());
  const SimulatedPlacement larger = with_teacher(of_layers(2));
  const SwitchCost large = onload(larger);
  const double bytes = reference_memory(one_reference(larger)).device.weights;
  EXPECT_EQ(large.device_after, bytes_on(larger.run, 8, bytes));
  EXPECT_EQ(
      large.duration,
      from_seconds(onload_seconds(sim_hw::make_fabric(larger.run.cluster), larger.run, bytes)));
  EXPECT_GT(large.duration, small.duration * 9 / 5);
}

TEST(Teacher, GetsAsMuchOfTheTrainersLayoutAsItsModelAllows) {
  SimulatedPlacement p = fused();
  p.run.model = model("qwen3-30b-a3b");
  p.run.config.trainer = {.tp = 4, .pp = 2, .ep = 8, .micro_batch_tokens = 8192};
  EXPECT_EQ(reference_layout(one_reference(p)).ep, 8);
  p.run.reference_model = model("qwen2.5-0.5b");  // 14 heads, no experts
  const sim_hw::Layout layout = reference_layout(one_reference(p));
  EXPECT_EQ(layout.tp, 2);
  EXPECT_EQ(layout.pp, 2);
  EXPECT_EQ(layout.ep, 1);
  EXPECT_EQ(layout.dp, 4);
  EXPECT_TRUE(check_reference(one_reference(p)));
}

TEST(Teacher, HasALayoutOfItsOwn) {
  SimulatedPlacement p = with_teacher(model("qwen3-30b-a3b"));
  EXPECT_EQ(reference_layout(one_reference(p)).ep, 1) << "that of the dense trainer";
  const double whole = reference_memory(one_reference(p)).device.weights;
  p.run.config.reference = {.model = {}, .tp = 1, .pp = 1, .ep = 16, .cp = {}};
  const sim_hw::Layout layout = reference_layout(one_reference(p));
  EXPECT_EQ(layout.tp, 1);
  EXPECT_EQ(layout.ep, 16);
  EXPECT_EQ(layout.dp, 16);
  EXPECT_LT(reference_memory(one_reference(p)).device.weights, whole / 2);
  p.run.config.reference.tp = 5;
  p.reference_cards = 10;
  const Status heads = check_reference(one_reference(p));
  ASSERT_FALSE(heads);
  EXPECT_EQ(heads.error().context,
            "tp = 5 does not divide 32 heads of Qwen3-30B-A3B; nearest: tp = 4");
}

TEST(Teacher, OfADenseModelHasNoExpertParallelism) {
  SimulatedPlacement p = with_teacher(of_layers(1));
  p.run.config.reference.ep = 2;
  const Status status = check_reference(one_reference(p));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("has no experts; nearest: ep = 1"), std::string::npos);
}

}  // namespace
}  // namespace temper::actors
