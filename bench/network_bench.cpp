// Measures the network model of sim_hw:
// - fluid flows: direct all-to-all of 384 devices (147,072 flows) through one switch, and on nodes
//   of 8 with oversubscribed uplinks; a permutation, which has no symmetry; peak memory of the
//   process
// - closed forms: one all-gather, one all-reduce
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/network/scenarios.hpp"

#include <benchmark/benchmark.h>
#include <sys/resource.h>

namespace temper::sim_hw {
namespace {

void note_peak_memory(benchmark::State& state) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_rss_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

void flat_direct_all_to_all(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(flat_direct_all_to_all_seconds(state.range(0), 64e6));
  note_peak_memory(state);
}
BENCHMARK(flat_direct_all_to_all)->Arg(64)->Arg(384)->Unit(benchmark::kMillisecond);

void contended(benchmark::State& state, Contention scenario) {
  for (auto _ : state)
    benchmark::DoNotOptimize(contended_seconds(scenario, state.range(0), 2, 64e6).end);
  note_peak_memory(state);
}
BENCHMARK_CAPTURE(contended, all_to_all, Contention::AllToAll)
    ->Arg(384)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(contended, random, Contention::Random)->Arg(384)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(contended, weights_and_blocks, Contention::WeightsAndBlocks)
    ->Arg(384)
    ->Unit(benchmark::kMillisecond);

Fabric cm384() {
  Catalog catalog = Catalog::shipped();
  return make_fabric(*catalog.hardware("cm384").value());
}

void all_gather(benchmark::State& state) {
  const Fabric fabric = cm384();
  double bytes = 1e6;
  for (auto _ : state)
    benchmark::DoNotOptimize(all_gather_seconds(fabric, {state.range(0), 1}, bytes += 1));
}
BENCHMARK(all_gather)->Arg(16)->Arg(768);

void all_reduce(benchmark::State& state) {
  const Fabric fabric = cm384();
  double bytes = 64e6;
  for (auto _ : state)
    benchmark::DoNotOptimize(all_reduce_seconds(fabric, {state.range(0), 1}, bytes += 1));
}
BENCHMARK(all_reduce)->Arg(16)->Arg(768);

}  // namespace
}  // namespace temper::sim_hw

BENCHMARK_MAIN();
