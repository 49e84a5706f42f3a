// The steps of a simulated engine that applies an adapter beside frozen weights.
#include "tests/rollout/simulated/simulated_world.hpp"
#include "tests/support/adapter_targets.hpp"
#include "tests/support/simulated_drive.hpp"

namespace temper::rollout {
namespace {

actors::SimulationSettings pangu_engine(std::optional<std::int64_t> rank) {
  auto s = actors::testing::settings_of("cm384", "pangu-ultra-moe-718b");
  s.cards = 32;
  s.config.rollout.tp = 4;
  s.config.rollout.ep = 64;
  s.config.trainer.mtp = true;
  if (rank)
    s.adapter = sim_hw::make_adapter(s.model, *rank, test::kLatentTargets).value();
  return s;
}

double step(const actors::SimulationSettings& s, std::int64_t responses) {
  return EngineCost(s).decode({responses, responses * 6000}).seconds(1);
}

TEST(AdapterEngine, NoStepIsFasterWithAnAdapter) {
  for (const sim_hw::WeightFormat weights :
       {sim_hw::WeightFormat::Bf16, sim_hw::WeightFormat::Int8}) {
    for (const actors::SpeculationConfig speculation : {actors::SpeculationConfig{}, {1, 0.7}}) {
      for (const std::int64_t responses : {1, 16, 400, 1600, 3000}) {
        double before = 0;
        for (const std::optional<std::int64_t> rank :
             {std::optional<std::int64_t>(), {1}, {8}, {64}}) {
          auto s = pangu_engine(rank);
          s.config.rollout.weights = weights;
          s.config.rollout.speculation = speculation;
          EXPECT_GT(step(s, responses), before)
              << responses << " responses, rank " << rank.value_or(0);
          before = step(s, responses);
        }
      }
    }
  }
}

TEST(AdapterEngine, PrefillPaysItsProducts) {
  const std::deque<PrefillPiece> prompts(64, PrefillPiece{4096});
  const double none = EngineCost(pangu_engine({})).prefill(prompts, 0);
  const double few = EngineCost(pangu_engine(8)).prefill(prompts, 0);
  const double many = EngineCost(pangu_engine(64)).prefill(prompts, 0);
  EXPECT_GT(few, none);
  EXPECT_GT(many, few);
  EXPECT_GT(EngineCost(pangu_engine(8)).prefill_use(prompts).flops,
            EngineCost(pangu_engine({})).prefill_use(prompts).flops);
}

TEST(AdapterEngine, ExchangesNothingMore) {
  const VersionLoad load{1600, 1600 * 6000};
  EXPECT_EQ(EngineCost(pangu_engine(8)).decode(load).sent.total(),
            EngineCost(pangu_engine({})).decode(load).sent.total());
}

}  // namespace
}  // namespace temper::rollout
