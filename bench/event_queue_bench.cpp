// Measures the event queue of simulated runs (sim_hw/events/event_queue.hpp). One event removes the
// next source and schedules it again at a later time.
// - tournament: the queue itself; heap4: an indexed 4-ary heap; std_heap: a std::priority_queue of
//   (time, source), which cannot change pending entries
// - with 16, 384, 1024, 65536 sources
// - distribution of the time until the next event: equal, narrow (1 us +- 1 %), uniform (0 to 1 s),
//   exponential (mean 1 ms), bimodal (1 us, or 1 s in one of ten)
// items_per_second is events per second. Times are drawn beforehand and read in turn.
#include "sim_hw/events/event_queue.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <queue>
#include <random>

namespace temper::sim_hw {
namespace {

enum class Spread { Equal, Narrow, Uniform, Exponential, Bimodal };

constexpr std::size_t kDraws = 1U << 16;

std::vector<Duration> draw(Spread spread) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Duration> out;
  out.reserve(kDraws);
  for (std::size_t i = 0; i < kDraws; ++i) {
    const double u = uniform(random);
    double ns = 1000;
    if (spread == Spread::Narrow)
      ns = 990 + 20 * u;
    else if (spread == Spread::Uniform)
      ns = 1 + 1e9 * u;
    else if (spread == Spread::Exponential)
      ns = 1 - 1e6 * std::log1p(-u);
    else if (spread == Spread::Bimodal)
      ns = u < 0.1 ? 1e9 : 1000;
    out.emplace_back(static_cast<std::int64_t>(ns));
  }
  return out;
}

struct Tournament {
  explicit Tournament(std::size_t sources) : queue(sources) {}
  void fill(EventQueue::Source source, Time at) { queue.set(source, at); }
  void step(Duration until_next) { queue.set(queue.next(), *queue.time() + until_next); }
  EventQueue queue;
};

/// Keeps the position of every source in the heap, because any source may be updated.
struct Heap4 {
  using Entry = std::pair<Time, EventQueue::Source>;
  explicit Heap4(std::size_t sources) : place(sources) { heap.reserve(sources); }
  void fill(EventQueue::Source source, Time at) {
    heap.emplace_back(at, source);
    std::size_t i = heap.size() - 1;
    for (; i > 0 && Entry(at, source) < heap[(i - 1) / 4]; i = (i - 1) / 4)
      put(i, heap[(i - 1) / 4]);
    put(i, {at, source});
  }
  void step(Duration until_next) {
    const Entry entry{heap[0].first + until_next, heap[0].second};
    std::size_t i = 0;
    for (std::size_t child = 1; child < heap.size(); child = 4 * i + 1) {
      const std::size_t end = std::min(child + 4, heap.size());
      std::size_t least = child;
      for (++child; child < end; ++child)
        least = heap[child] < heap[least] ? child : least;
      if (!(heap[least] < entry))
        break;
      put(i, heap[least]);
      i = least;
    }
    put(i, entry);
  }
  void put(std::size_t i, Entry entry) {
    heap[i] = entry;
    place[entry.second] = i;
  }
  std::vector<Entry> heap;
  std::vector<std::size_t> place;
};

struct StdHeap {
  using Entry = std::pair<Time, EventQueue::Source>;
  explicit StdHeap(std::size_t) {}
  void fill(EventQueue::Source source, Time at) { queue.push({at, source}); }
  void step(Duration until_next) {
    const Entry entry = queue.top();
    queue.pop();
    queue.push({entry.first + until_next, entry.second});
  }
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
};

template <class Queue>
void events(benchmark::State& state, Spread spread) {
  const std::vector<Duration> draws = draw(spread);
  const auto sources = static_cast<std::size_t>(state.range(0));
  Queue queue(sources);
  for (std::size_t i = 0; i < sources; ++i)
    queue.fill(static_cast<EventQueue::Source>(i), Time{} + draws[i % kDraws]);
  std::size_t i = 0;
  for (auto _ : state)
    queue.step(draws[i++ % kDraws]);
  state.SetItemsProcessed(state.iterations());
}

template <class Queue>
void register_all(const std::string& name) {
  constexpr std::array<std::pair<Spread, const char*>, 5> kSpreads{
      {{Spread::Equal, "equal"},
       {Spread::Narrow, "narrow"},
       {Spread::Uniform, "uniform"},
       {Spread::Exponential, "exponential"},
       {Spread::Bimodal, "bimodal"}}};
  for (const auto& [spread, text] : kSpreads) {
    auto* bench = benchmark::RegisterBenchmark((name + "/" + text).c_str(), events<Queue>, spread);
    for (const std::int64_t sources : {16, 384, 1024, 65536})
      bench->Arg(sources);
  }
}

}  // namespace
}  // namespace temper::sim_hw

int main(int argc, char** argv) {
  using namespace temper::sim_hw;
  register_all<Tournament>("tournament");
  register_all<Heap4>("heap4");
  register_all<StdHeap>("std_heap");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
