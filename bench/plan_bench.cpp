// Measures planning, on one core:
// - a million training scenarios of Pangu Ultra MoE 718B, on its training cluster and on one CM384.
//   Each scenario's divisors are checked, the ledger of its fullest device is compared with device
//   and host memory and, if it fits, its step is timed. Scenarios share nothing and none is
//   skipped; they are drawn beforehand from the search space among those that divide. Counters:
//   scenarios that fit (and are timed), and scenarios per second. Then the same with all of them
//   timed.
// - the same search with its bounds, from the request to the three best plans and the front
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/plan/train_search.hpp"

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

namespace temper::sim_hw {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

struct Question {
  const char* hardware;
  std::int64_t cards;
  std::int64_t batch;
};
constexpr Question kTrainingCluster{"ascend-910b", 6144, 1536};
constexpr Question kSupernode{"cm384", 384, 768};

struct Setup {
  explicit Setup(const Question& q)
      : catalog(Catalog::shipped()),
        problem(**catalog.model("pangu-ultra-moe-718b"), **catalog.hardware(q.hardware), q.cards) {
    shape.global_batch = q.batch;
    shape.seq = 8192;
  }
  Catalog catalog;
  TrainProblem problem;
  TrainShape shape;
};

class Draw {
 public:
  template <class T>
  T of(const std::vector<T>& values) {
    return values[random_() % values.size()];
  }

 private:
  std::mt19937_64 random_{1};
};

/// `count` scenarios that divide, with any number of devices.
std::vector<TrainScenario> scenarios(const Setup& setup, std::size_t count) {
  const TrainSpace space = full_space(setup.problem, setup.shape);
  Draw draw;
  std::vector<TrainScenario> out;
  out.reserve(count);
  while (out.size() < count) {
    TrainScenario s{{}, setup.shape, draw.of(space.state)};
    Layout& l = s.layout;
    l.tp = draw.of(space.tp);
    l.pp = draw.of(space.pp);
    l.vpp = l.pp > 1 ? draw.of(space.vpp) : 1;
    l.cp = draw.of(space.cp);
    l.dp = draw.of(space.dp);
    if (l.devices() > setup.problem.devices)
      continue;
    l.ep = draw.of(space.ep);
    l.expert_tp = draw.of(std::vector<std::int64_t>{1, l.tp});
    l.zero = draw.of(space.zero);
    l.sequence_parallel = l.tp > 1 ? draw.of(space.sequence_parallel) : SequenceParallel::Off;
    s.shape.micro_batch = draw.of(space.micro_batch);
    s.shape.recompute = draw.of(space.recompute);
    if (check_layout(setup.problem.model, l.devices(), l, s.shape))
      out.push_back(s);
  }
  return out;
}

enum class Timed { Fitting, All };

void million_scenarios(benchmark::State& state, const Question& question, Timed timed) {
  const Setup setup(question);
  const std::vector<TrainScenario> all = scenarios(setup, kMillion);
  const TrainProblem& p = setup.problem;
  std::int64_t fit = 0;
  for (auto _ : state) {
    for (const TrainScenario& s : all) {
      if (!check_layout(p.model, s.layout.devices(), s.layout, s.shape))
        continue;
      const bool fits = p.fits(plan_memory(p, s));
      fit += fits ? 1 : 0;
      if (!fits && timed == Timed::Fitting)
        continue;
      double seconds = train_iteration_time(p.model, p.device, p.fabric, s.layout, s.shape).total();
      benchmark::DoNotOptimize(seconds);
    }
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["fit"] = static_cast<double>(fit) / runs;
  state.SetItemsProcessed(kMillion * static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK_CAPTURE(million_scenarios, training_cluster, kTrainingCluster, Timed::Fitting)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(million_scenarios, training_cluster_all_timed, kTrainingCluster, Timed::All)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(million_scenarios, supernode, kSupernode, Timed::Fitting)
    ->Unit(benchmark::kSecond);

void search(benchmark::State& state, const Question& question) {
  const Setup setup(question);
  SearchCounts counts;
  for (auto _ : state) {
    const TrainSearch found =
        search_train(setup.problem, full_space(setup.problem, setup.shape), setup.shape, {});
    counts = found.counts;
    benchmark::DoNotOptimize(found.best.front().total());
  }
  state.counters["nodes"] = static_cast<double>(counts.nodes);
  state.counters["scenarios"] = static_cast<double>(counts.scenarios);
  state.counters["timed"] = static_cast<double>(counts.timed);
}
BENCHMARK_CAPTURE(search, training_cluster, kTrainingCluster)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, supernode, kSupernode)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace temper::sim_hw

BENCHMARK_MAIN();
