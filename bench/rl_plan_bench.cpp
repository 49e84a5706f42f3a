// Measures how many RL plans are judged per second, on one core, for the 718B model on 384 cards:
// - closed form: places a point of the search space on the cards, completes it with layouts and the
//   largest KV cache that fits every memory phase of every card, and computes its steady state; for
//   every point of all placements and bounds 0 to 4, without caches, including those that do not
//   fit
// - event simulation: a run in virtual time of the given number of steady updates, in which each
//   simulated response counts as several (study/simulate/simulate.hpp)
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "study/search/space.hpp"
#include "study/search/steady_state.hpp"
#include "study/simulate/layouts.hpp"
#include "study/simulate/simulate.hpp"

#include <benchmark/benchmark.h>

namespace temper::study {
namespace {

void closed_form(benchmark::State& state) {
  const orchestrator::ResolvedPipeline like =
      *orchestrator::resolve(*orchestrator::load_config(TEMPER_CONFIGS "/cm384_pangu.yaml"));
  const actors::SimulatedRun& run = *like.simulation;
  std::vector<Space> spaces;
  for (const auto& [mode, name] : EnumNames<orchestrator::PlacementMode>::value) {
    for (int eta = 0; eta <= 4; ++eta) {
      orchestrator::PipelineConfig c = like.config;
      c.staleness.bound = eta;
      spaces.emplace_back(c, mode, run);
    }
  }
  for (auto _ : state) {
    LayoutChooser layouts = *LayoutChooser::create(like);
    SteadyStateModel model(run);
    std::int64_t judged = 0, fitting = 0;
    for (const Space& space : spaces) {
      for (std::size_t n = 0; n < space.size(); ++n) {
        const auto placed = space.at(space.point(n));
        if (!placed)
          continue;
        ++judged;
        const orchestrator::PlacementConfig cards = orchestrator::resolve_placement(*placed);
        const auto complete = layouts.complete(*placed, cards);
        if (!complete)
          continue;
        ++fitting;
        benchmark::DoNotOptimize(model(*complete, cards));
      }
    }
    state.SetItemsProcessed(judged);
    state.counters["judged"] = static_cast<double>(judged);
    state.counters["fitting"] = static_cast<double>(fitting);
  }
}
BENCHMARK(closed_form)->Iterations(1)->Unit(benchmark::kSecond);

void event_simulation(benchmark::State& state) {
  orchestrator::PipelineConfig config =
      *orchestrator::load_config(TEMPER_CONFIGS "/cm384_pangu.yaml");
  config.steps = steps_for(static_cast<std::uint64_t>(state.range(0)), 2);
  const orchestrator::ResolvedPipeline pipeline = *orchestrator::resolve(std::move(config));
  const std::int64_t w = largest_weight(pipeline, state.range(1));
  double rate = 0;
  for (auto _ : state)
    rate = simulate_sampled(pipeline, w)->steady.sustained_per_s;
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  state.counters["tokens_per_s"] = rate;
}
BENCHMARK(event_simulation)
    ->ArgsProduct({{1, 2, 4, 20}, {1, 2, 4, 8}})
    ->ArgNames({"updates", "each"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace temper::study

BENCHMARK_MAIN();
