#include "study/search/steady_state.hpp"

#include "actors/simulation/role_memory.hpp"
#include "core/random.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "study/search/steady_terms.hpp"
#include "study/simulate/reference_space.hpp"
#include "study/simulate/simulate.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::study {

using namespace orchestrator;
namespace {

/// A shipped configuration at a bound, by closed form and by a run with two whole turns.
struct Both {
  SteadyState closed;
  Rates run;
};

Both both(PipelineConfig config) {
  config.steps = steps_for(10, static_cast<std::int32_t>(config.staleness.bound));
  const auto pipeline = resolve(std::move(config)).value();
  const auto figures = simulate_sampled(pipeline, largest_weight(pipeline, 4)).value();
  SteadyStateModel model(*pipeline.simulation);
  return {model(pipeline.config, pipeline.placement), figures.steady};
}

PipelineConfig separate(double eta) {
  PipelineConfig c = load_config(TEMPER_CONFIGS "/cm384_pangu.yaml").value();
  c.staleness.bound = eta;
  return c;
}

PipelineConfig fused(double eta, double return_share) {
  PipelineConfig c =
      load_config(TEMPER_CONFIGS "/../tests/support/cm384_pangu_fused_512.yaml").value();
  c.staleness.bound = eta;
  c.placement.return_share = return_share;
  return c;
}

/// Few enough slots to limit, instead of the bound.
PipelineConfig few_slots(double eta, std::int32_t slots) {
  PipelineConfig c = separate(eta);
  c.rollout.concurrency = slots;
  return c;
}

/// A quarter of the batch, so that runs take less time, and about five calls per response.
PipelineConfig with_tools(PipelineConfig c, Duration latency) {
  c.algorithm.groups_per_update = 128;
  c.rollout.concurrency = 65536;
  c.simulation.rollout.chunked_prefill = true;
  actors::ToolConfig& tools = c.simulation.tools.emplace();
  tools.turn.mean = 1000;
  tools.result.mean = 400;
  tools.latency.mean = latency;
  tools.latency.cap = std::chrono::hours(2);
  return c;
}

/// A random teacher with a random layout that fits.
PipelineConfig with_teacher(PipelineConfig c, Random& random) {
  constexpr std::array kTeachers{
      "qwen3-32b", "qwen2.5-72b", "qwen3-235b-a22b", "deepseek-v3", "llama-3.1-405b"};
  c.simulation.reference.model = kTeachers[random.below(kTeachers.size())];
  const ResolvedPipeline pipeline = resolve(c).value();
  const actors::SimulationSettings own = actors::one_reference(simulated_placement(pipeline));
  const auto batch = draw_first_batch(c, pipeline.simulation->config).sequences();
  const ScoringPasses passes = scoring_passes(c, pipeline.placement, std::ssize(batch));
  const auto layouts = rank_references(own, actors::device_capacity(own), batch, passes);
  EXPECT_FALSE(layouts.empty());
  c.simulation.reference = layouts[random.below(layouts.size())].layout;
  return c;
}

SteadyState judged(SteadyStateModel& model, const PipelineConfig& config) {
  return model(config, resolve_placement(config));
}

TEST(SteadyState, ThroughputMatchesRunsOnSeparateCards) {
  for (const double eta : {0.0, 1.0, 2.0, 4.0}) {
    const Both b = both(separate(eta));
    EXPECT_NEAR(b.closed.trained_per_s / b.run.sustained_per_s, 1, 0.12) << "eta " << eta;
  }
}

TEST(SteadyState, ThroughputHasTheStagesOfTheFramework) {
  PipelineConfig slow = fused(0, 0);
  slow.simulation.framework = "verl";  // Some 25 s of a step of 1,500 s.
  const Both b = both(std::move(slow)), ideal = both(fused(0, 0));
  const double closed = ideal.closed.trained_per_s / b.closed.trained_per_s;
  const double run = ideal.run.sustained_per_s / b.run.sustained_per_s;
  EXPECT_GT(closed, 1.005);
  EXPECT_NEAR(closed, run, 0.2 * (run - 1));
}

TEST(SteadyState, ThroughputMatchesRunsOnTimeSharedCards) {
  for (const double eta : {0.0, 1.0, 2.0, 4.0}) {
    for (const double share : {0.0, 0.25}) {
      const Both b = both(fused(eta, share));
      EXPECT_NEAR(b.closed.trained_per_s / b.run.sustained_per_s, 1, 0.2)
          << "eta " << eta << ", return share " << share;
    }
  }
}

TEST(SteadyState, ThroughputMatchesRunsWithLentCards) {
  for (const double eta : {0.0, 2.0}) {
    PipelineConfig c = separate(eta);
    c.placement.mode = PlacementMode::Hybrid;
    const Both b = both(c);
    EXPECT_NEAR(b.closed.trained_per_s / b.run.sustained_per_s, 1, 0.2) << "eta " << eta;
  }
}

TEST(SteadyState, ThroughputMatchesRunsWithTeachersOfOtherShapes) {
  Random random(1, "teachers");
  for (const double eta : {0.0, 2.0}) {
    for (int i = 0; i < 3; ++i) {
      for (const auto& [given, most] :
           {std::pair(separate(eta), 0.12), std::pair(fused(eta, 0), 0.2)}) {
        const PipelineConfig config = with_teacher(given, random);
        SCOPED_TRACE(to_yaml(config.simulation.reference));
        const Both b = both(config);
        EXPECT_NEAR(b.closed.trained_per_s / b.run.sustained_per_s, 1, most) << "eta " << eta;
        const auto state = actors::CardState::Reference;
        EXPECT_NEAR(b.closed.states.at(state), b.run.states.at(state), 0.05) << "eta " << eta;
      }
    }
  }
}

TEST(SteadyState, ThroughputMatchesRunsLimitedBySlots) {
  // Groups of 16 are dispatched whole: of 256 slots 7 or 8 are empty.
  const Both b = both(few_slots(2, 256));
  EXPECT_EQ(b.closed.bottleneck, Bottleneck::Slots);
  EXPECT_NEAR(b.closed.trained_per_s / b.run.sustained_per_s, 1, 0.15);
}

TEST(SteadyState, AStepWaitsForTensorsAsInRuns) {
  PipelineConfig c = separate(0);
  const Both without = both(c);
  c.simulation.tensors = {.per_token = Bytes(18560), .per_response = {}, .link_share = 0.0001};
  const Both with = both(c);
  const double closed = with.closed.seconds_per_update - without.closed.seconds_per_update;
  const double run = with.run.seconds_per_update - without.run.seconds_per_update;
  EXPECT_GT(closed, 300);
  EXPECT_NEAR(closed / run, 1, 0.1);
}

TEST(SteadyState, MeanStalenessMatchesRuns) {
  for (const double eta : {0.0, 1.0, 2.0, 4.0}) {
    for (const PipelineConfig& config : {separate(eta),
                                         fused(eta, 0.25),
                                         few_slots(eta, 256),
                                         few_slots(eta, 512),
                                         few_slots(eta, 1024)}) {
      const Both b = both(config);
      EXPECT_NEAR(b.closed.staleness_mean, b.run.staleness_mean, 0.35)
          << "eta " << eta << ", " << name_of(config.placement.mode) << ", slots "
          << config.rollout.concurrency;
    }
  }
}

TEST(SteadyState, CardStatesMatchRuns) {
  const auto compare = [](const Both& b) {
    for (const auto state : {actors::CardState::Decode, actors::CardState::Train}) {
      EXPECT_NEAR(b.closed.states.at(state), b.run.states.at(state), 0.15) << name_of(state);
    }
  };
  for (const double eta : {0.0, 2.0}) {
    SCOPED_TRACE(eta);
    compare(both(separate(eta)));
    compare(both(fused(eta, 0.25)));
  }
}

TEST(SteadyState, FewerSlotsGiveFresherBatchesAndSlowerUpdates) {
  SteadyStateModel model(*resolve(separate(4)).value().simulation);
  SteadyState last;
  for (const std::int32_t slots : {64, 128, 256, 512}) {
    const SteadyState now = judged(model, few_slots(4, slots));
    EXPECT_EQ(now.bottleneck, Bottleneck::Slots) << slots;
    EXPECT_GT(now.staleness_mean, last.staleness_mean) << slots;
    EXPECT_GT(now.trained_per_s, last.trained_per_s) << slots;
    last = now;
  }
}

TEST(SteadyState, ThroughputMatchesRunsWithTools) {
  using std::chrono::seconds;
  for (const Duration latency : {seconds(10), seconds(60), seconds(300)}) {
    for (const double eta : {0.0, 2.0}) {
      for (const PipelineConfig& config : {separate(eta), fused(eta, 0)}) {
        const Both b = both(with_tools(config, latency));
        EXPECT_NEAR(b.closed.trained_per_s / b.run.sustained_per_s, 1, 0.2)
            << "eta " << eta << ", " << name_of(config.placement.mode) << ", "
            << latency / seconds(1) << " s";
      }
    }
  }
}

TEST(SteadyState, ABoundHidesToolsAsItHidesLongResponses) {
  const auto kept = [](double eta) {
    const auto per_s = [&](Duration latency) {
      const PipelineConfig c = with_tools(separate(eta), latency);
      SteadyStateModel model(*resolve(c).value().simulation);
      return judged(model, c).trained_per_s;
    };
    return per_s(std::chrono::seconds(60)) / per_s(std::chrono::milliseconds(1));
  };
  EXPECT_LT(kept(0), kept(2));
  EXPECT_LT(kept(2), kept(8));
}

TEST(SteadyState, ToolsThatNobodyCallsChangeNoDigit) {
  PipelineConfig hybrid = separate(2);
  hybrid.placement.mode = PlacementMode::Hybrid;
  for (PipelineConfig config :
       {separate(0), separate(2), few_slots(2, 256), hybrid, fused(0, 0), fused(2, 0.25)}) {
    SteadyStateModel without(*resolve(config).value().simulation);
    const SteadyState plain = judged(without, config);
    actors::ToolConfig& tools = config.simulation.tools.emplace();
    tools.turn.kind = actors::LengthKind::Constant;
    tools.turn.mean = 40000;  // Responses have 32768 tokens at most.
    tools.turn.cap = Tokens(40000);
    SteadyStateModel with(*resolve(config).value().simulation);
    const SteadyState same = judged(with, config);
    EXPECT_EQ(plain.seconds_per_update, same.seconds_per_update);
    EXPECT_EQ(plain.trained_per_s, same.trained_per_s);
    EXPECT_EQ(plain.staleness_mean, same.staleness_mean);
    EXPECT_EQ(plain.decode_seconds, same.decode_seconds);
    EXPECT_EQ(plain.states, same.states);
  }
}

TEST(ToolResults, TheLongestOfAStepIsExpectedOverItsNumber) {
  steady::ToolResults results;
  results.quantiles.fill(400);
  // With all of 400 tokens: 400 times the chance of at least one, 1 - e^-0.5.
  EXPECT_NEAR(results.longest(0.5), 400 * (1 - std::exp(-0.5)), 1e-9);
  // Half have 800: 400 (1 - e^-2) + the other 400 if at least one of the long ones comes, 1 - e^-1.
  std::fill(results.quantiles.begin() + steady::ToolResults::kQuantiles / 2,
            results.quantiles.end(),
            800.0);
  EXPECT_NEAR(results.longest(2), 400 * (1 - std::exp(-2)) + 400 * (1 - std::exp(-1)), 1e-9);
}

TEST(SteadyState, IsDeterministic) {
  SteadyStateModel model(*resolve(separate(2)).value().simulation);
  const SteadyState first = judged(model, separate(2));
  judged(model, few_slots(1, 64));
  EXPECT_EQ(judged(model, separate(2)).seconds_per_update, first.seconds_per_update);
}

}  // namespace
}  // namespace temper::study
