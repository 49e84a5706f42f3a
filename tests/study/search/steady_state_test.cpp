#include "study/search/steady_state.hpp"

#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "study/simulate/simulate.hpp"

#include <gtest/gtest.h>

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

SteadyState judged(SteadyStateModel& model, const PipelineConfig& config) {
  return model(config, resolve_placement(config));
}

TEST(SteadyState, ThroughputMatchesRunsOnSeparateCards) {
  for (const double eta : {0.0, 1.0, 2.0, 4.0}) {
    const Both b = both(separate(eta));
    EXPECT_NEAR(b.closed.trained_per_s / b.run.sustained_per_s, 1, 0.12) << "eta " << eta;
  }
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

TEST(SteadyState, ThroughputMatchesRunsLimitedBySlots) {
  // Groups of 16 are dispatched whole: of 256 slots 7 or 8 are empty.
  const Both b = both(few_slots(2, 256));
  EXPECT_EQ(b.closed.bottleneck, Bottleneck::Slots);
  EXPECT_NEAR(b.closed.trained_per_s / b.run.sustained_per_s, 1, 0.15);
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

TEST(SteadyState, IsDeterministic) {
  SteadyStateModel model(*resolve(separate(2)).value().simulation);
  const SteadyState first = judged(model, separate(2));
  judged(model, few_slots(1, 64));
  EXPECT_EQ(judged(model, separate(2)).seconds_per_update, first.seconds_per_update);
}

}  // namespace
}  // namespace temper::study
