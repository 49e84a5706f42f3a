// Number formats and speculation of a simulated engine: the costs of `temper cost`, and the time
// and memory of the engine.
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/iteration/serving.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"
#include "tests/support/simulated_drive.hpp"

#include <array>
#include <cmath>
#include <map>

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
  sim_hw::ServingPlan plan;
  plan.layout = actors::rollout_layout(s);
  plan.formats = s.config.rollout.formats();
  plan.drafts = actors::engine_drafts(s);
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

/// That engine with drafts of depth 3.
actors::SimulationSettings drafting_engine(sim_hw::Draft method,
                                           std::optional<std::int64_t> most = {}) {
  auto s = large_engine();
  s.config.rollout.speculation = {
      .depth = 3, .acceptance = 0.5, .method = method, .disable_by_batch_size = most};
  return s;
}

constexpr std::array kMethods{sim_hw::Draft::Mtp, sim_hw::Draft::Eagle, sim_hw::Draft::Ngram};

EngineCost::Decode decode(EngineCost& cost, std::int64_t per_replica) {
  return cost.decode({16 * per_replica, 16 * per_replica * 6000});
}

TEST(EngineFormats, AStepOfEveryMethodTakesWhatCostAnswers) {
  std::map<sim_hw::Draft, double> steps;
  for (const sim_hw::Draft method : kMethods) {
    const auto s = drafting_engine(method);
    EngineCost cost(s);
    EXPECT_EQ(actors::engine_drafts(s).by, method);
    EXPECT_EQ(cost.tokens_per_step(), 1 + 0.5 + 0.25 + 0.125);
    const sim_hw::ServingCost expected = serving(s, 96, 6000);
    EXPECT_NEAR(decode(cost, 96).seconds(1) * 1.875, expected.step, 1e-9 * expected.step);
    steps[method] = expected.step;
    EXPECT_EQ(expected.draft > 0, method != sim_hw::Draft::Ngram);
  }
  using sim_hw::Draft;
  EXPECT_GT(steps[Draft::Mtp], steps[Draft::Ngram]);
  EXPECT_GT(steps[Draft::Eagle], steps[Draft::Ngram]);
  EngineCost none(drafting_engine(Draft::None));
  EXPECT_EQ(decode(none, 96).fixed, EngineCost(large_engine()).decode({16 * 96, 0}).fixed);
  EXPECT_EQ(none.tokens_per_step(), 1);
}

TEST(EngineFormats, StepsWithMoreResponsesThanTheSwitchDraftNothing) {
  EngineCost without(large_engine());
  const double plain = decode(without, 65).seconds(1);
  for (const sim_hw::Draft method : kMethods) {
    EngineCost always(drafting_engine(method));
    EngineCost cost(drafting_engine(method, 64));
    EXPECT_TRUE(decode(cost, 64).drafted);
    EXPECT_EQ(decode(cost, 64).seconds(1), decode(always, 64).seconds(1));
    EXPECT_EQ(decode(cost, 64).sent.total(), decode(always, 64).sent.total());
    // Replicas are equally full: with one response more, the fullest has 65.
    EXPECT_FALSE(cost.decode({16 * 64 + 1, 0}).drafted);
    const EngineCost::Decode above = decode(cost, 65);
    EXPECT_FALSE(above.drafted);
    if (method == sim_hw::Draft::Ngram) {
      EXPECT_EQ(above.seconds(1), plain);
      EXPECT_EQ(above.sent.total(), decode(without, 65).sent.total());
    } else {  // One of 62 layers more, which caches the tokens.
      EXPECT_GT(above.seconds(1), plain * (1 + 0.2 / 61));
      EXPECT_LT(above.seconds(1), plain * (1 + 2.0 / 61));
      EXPECT_GT(above.sent.total(), decode(without, 65).sent.total());
    }
  }
}

TEST(EngineFormats, PrefillsBesideUndraftedStepsAddWhatTheyDoWithoutSpeculation) {
  const std::deque<PrefillPiece> prompts(4, PrefillPiece{4096});
  const EngineCost without(large_engine());
  const EngineCost always(drafting_engine(sim_hw::Draft::Ngram));
  const EngineCost cost(drafting_engine(sim_hw::Draft::Ngram, 64));
  EXPECT_EQ(cost.prefill(prompts, 16 * 65), without.prefill(prompts, 16 * 65));
  EXPECT_EQ(cost.prefill(prompts, 16 * 64), always.prefill(prompts, 16 * 64));
  EXPECT_NE(always.prefill(prompts, 16 * 65), without.prefill(prompts, 16 * 65));
}

TEST(EngineFormats, NoStepIsShorterThanItsLowerBound) {
  for (const sim_hw::Draft method : kMethods) {
    EngineCost cost(drafting_engine(method, 24));
    for (const std::int64_t load : {8, 24, 25, 40}) {
      const double least = seconds(cost.least(1000, 16 * load)) / 1000;
      EXPECT_GT(least, 0);
      for (std::int64_t b = 1; b <= load; ++b)
        EXPECT_LE(least, cost.decode({16 * b, 0}).seconds(1)) << b << " of " << load;
    }
  }
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

TEST(EngineFormats, DraftsBeginWhenFewEnoughResponsesRun) {
  auto s = small_engine();  // Four devices in two replicas.
  s.config.prompt.kind = actors::LengthKind::Constant;
  s.config.response.kind = actors::LengthKind::Trace;
  s.config.response.lengths = {100, 100, 1100};
  const auto steps = [&](std::optional<std::int64_t> most) {
    s.config.rollout.speculation = {.depth = 2,
                                    .acceptance = 0.5,
                                    .method = sim_hw::Draft::Ngram,
                                    .disable_by_batch_size = most};
    World world(s);
    world.run({at(Time{}, work(1, 3)[0])});
    EXPECT_EQ(world.ended().size(), 3U);
    return world.actor().counters().decode_steps;
  };
  EXPECT_EQ(steps({}), std::ceil(1100 / 1.75));
  EXPECT_EQ(steps(1), 100 + std::ceil(1000 / 1.75)) << "at first, one of two replicas has two";
  EXPECT_EQ(steps(2), std::ceil(1100 / 1.75));
  EXPECT_EQ(steps(0), 1100);
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
