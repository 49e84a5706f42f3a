// Number formats and speculation of a simulated engine: the costs of `temper cost`, and the time
// and memory of the engine.
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/iteration/serving.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"
#include "tests/support/simulated_drive.hpp"

namespace temper::rollout {
namespace {

/// 32 cards of a CM384 (64 devices, 16 replicas) with the 718B model.
actors::SimulationSettings large_engine() {
  auto s = actors::testing::settings_of("cm384", "pangu-ultra-moe-718b");
  s.cards = 32;
  s.config.rollout.tp = 4;
  s.config.rollout.ep = 64;
  s.config.trainer.mtp = true;
  return s;
}

/// What `temper cost kind=serving` answers for the same engine.
sim_hw::ServingCost serving(const actors::SimulationSettings& s, double batch, double context) {
  const actors::SpeculationConfig& speculation = s.config.rollout.speculation;
  sim_hw::ServingPlan plan;
  plan.layout = actors::rollout_layout(s);
  plan.formats = s.config.rollout.formats();
  if (speculation.depth > 0)
    plan.drafts = {sim_hw::Draft::Mtp, static_cast<double>(speculation.depth)};
  return sim_hw::serving_cost(s.model, s.cluster, plan, {.batch = batch, .context = context});
}

TEST(EngineFormats, StepsTakeWhatCostAnswers) {
  using W = sim_hw::WeightFormat;
  using C = sim_hw::CacheFormat;
  std::vector<double> steps;
  for (const W weights : {W::Bf16, W::Fp8, W::Int8, W::W4a8}) {
    for (const C cache : {C::Bf16, C::Int8}) {
      for (const actors::SpeculationConfig speculation : {actors::SpeculationConfig{}, {2, 0.7}}) {
        auto s = large_engine();
        s.config.rollout.weights = weights;
        s.config.rollout.kv_cache = cache;
        s.config.rollout.speculation = speculation;
        EngineCost cost(s);
        const double token = cost.decode({16 * 96, 16 * 96 * 6000}).seconds(1);
        const double step = serving(s, 96, 6000).step;
        EXPECT_NEAR(cost.tokens_per_step(), speculation.depth > 0 ? 1 + 0.7 + 0.49 : 1, 1e-12);
        EXPECT_NEAR(token * cost.tokens_per_step(), step, 1e-9 * step);
        steps.push_back(step);
      }
    }
  }
  EXPECT_LT(steps[8], 0.9 * steps[0]) << "INT8 against BF16, neither with drafts";
  EXPECT_GT(steps[1], steps[0]) << "a step with drafts against one without";
}

TEST(EngineFormats, PrefillComputesIn8Bits) {
  auto s = large_engine();
  const std::deque<PrefillPiece> prompts(64, PrefillPiece{4096});
  const double wide = EngineCost(s).prefill(prompts, 0);
  s.config.rollout.weights = sim_hw::WeightFormat::Int8;
  EXPECT_LT(EngineCost(s).prefill(prompts, 0), 0.9 * wide);
  s.config.rollout.weights = sim_hw::WeightFormat::Fp8;  // Unpacked to BF16 on this hardware.
  EXPECT_GT(EngineCost(s).prefill(prompts, 0), 0.95 * wide);
}

TEST(EngineFormats, AResponseTakesTheStepsThatItsAcceptedTokensLeave) {
  auto s = large_engine();
  s.config.response.kind = actors::LengthKind::Constant;  // 1000 tokens, one response.
  s.config.response.mean = 1000;
  s.config.prompt.kind = actors::LengthKind::Constant;
  s.config.rollout.kv_share = 0.5;
  s.config.rollout.speculation = {1, 0.6};
  World world(s);
  world.run({at(Time{}, work(1, 1)[0])});
  ASSERT_EQ(world.ended().size(), 1U);
  EXPECT_EQ(world.ended()[0].tokens, Tokens(1000));
  EXPECT_EQ(world.actor().counters().decode_steps, 625);  // 1000 / 1.6
}

TEST(EngineFormats, BlocksOfDraftsAreHeld) {
  auto s = small_engine();
  s.model.mtp_layers = 1;
  s.config.trainer.mtp = true;
  s.config.prompt.kind = s.config.response.kind = actors::LengthKind::Constant;
  s.config.response.mean = 16;  // With the prompt of 200 tokens, 13 blocks of 16 and a part.
  std::vector<std::int64_t> blocks;
  for (const std::int64_t depth : {0, 8, 16}) {
    s.config.rollout.speculation = {depth, depth > 0 ? 0.5 : 0};
    World world(s);
    world.run({at(Time{}, work(1, 1)[0])});
    blocks.push_back(world.actor().counters().most_blocks);
  }
  EXPECT_EQ(blocks, (std::vector<std::int64_t>{14, 14, 15}));
}

}  // namespace
}  // namespace temper::rollout
