// Steps of a simulated engine under skewed expert loads, with and without redundant experts.
#include "actors/simulation/role_layouts.hpp"
#include "sim_hw/iteration/serving.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"
#include "tests/support/simulated_drive.hpp"

namespace temper::rollout {
namespace {

actors::SimulationSettings engine(double exponent, std::int64_t redundant) {
  auto s = actors::testing::settings_of("cm384", "pangu-ultra-moe-718b");
  s.cards = 32;
  s.config.rollout.tp = 4;
  s.config.rollout.ep = 64;
  s.config.rollout.redundant_experts = redundant;
  s.config.experts.loads = actors::ExpertLoadKind::Zipf;
  s.config.experts.exponent = exponent;
  return s;
}

double step_of(EngineCost& cost) {
  return cost.decode({16 * 96, 16 * 96 * 6000}).seconds(1);
}

TEST(RedundantExperts, StepsTakeWhatCostAnswersForTheirImbalance) {
  for (const std::int64_t redundant : {0, 64, 128}) {
    const auto s = engine(0.63, redundant);
    EngineCost cost(s);
    cost.use_version(PolicyVersion(3));
    sim_hw::ServingPlan plan;
    plan.layout = actors::rollout_layout(s);
    plan.layout.dp = plan.layout.ep / plan.layout.tp;
    plan.layout.expert_imbalance =
        actors::engine_experts(s).at(PolicyVersion(3), actors::kAnyGainPays).imbalance;
    const double step =
        sim_hw::serving_cost(s.model, s.cluster, plan, {.batch = 96, .context = 6000}).step;
    EXPECT_NEAR(step_of(cost), step, 1e-9 * step) << redundant;
  }
}

TEST(RedundantExperts, PayWhereLoadsAreSkewedAndCostWhereTheyAreEqual) {
  EngineCost equal(engine(0, 0)), equal_copied(engine(0, 64));
  EXPECT_GT(step_of(equal_copied), step_of(equal));  // Reads 5 experts instead of 4.
  EngineCost skewed(engine(0.63, 0)), skewed_copied(engine(0.63, 64));
  EXPECT_GT(step_of(skewed), 1.2 * step_of(equal));
  skewed_copied.use_version(PolicyVersion(1));
  EXPECT_LT(step_of(skewed_copied), 0.9 * step_of(skewed));
  const std::deque<PrefillPiece> pieces(16, PrefillPiece{.tokens = 8192});
  EXPECT_LT(skewed_copied.prefill(pieces, 0), 0.9 * skewed.prefill(pieces, 0));
}

TEST(RedundantExperts, ClosedFormsUseTheMeanOfTheVersionsThatARunHas) {
  const auto s = engine(0.63, 64);
  auto experts = actors::engine_experts(s);
  double sum = 0;
  for (std::uint64_t v = 0; v < actors::kTypicalVersions; ++v)
    sum += experts.at(PolicyVersion(v), actors::kAnyGainPays).imbalance;
  EXPECT_DOUBLE_EQ(actors::typical(actors::engine_experts(s), actors::kAnyGainPays).imbalance,
                   sum / actors::kTypicalVersions);
}

}  // namespace
}  // namespace temper::rollout
