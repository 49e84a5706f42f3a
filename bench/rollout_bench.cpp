// Measures on one core:
//   simulate   24,576 requests (1536 prompts x 16, mean 8192 tokens, cap 32768) on 48 simulated
//              engines of 8 cards each, driven in virtual time like the in-process driver: seconds,
//              requests per second, decode steps, and peak resident memory
//   pressed    the same with a tenth of the KV cache, so that responses are preempted
// Usage: rollout_bench [repetitions]. Prints median and spread.
#include "actors/protocol/counted.hpp"
#include "actors/transport/message.hpp"
#include "rollout/simulated/rollout_actor.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <queue>

namespace temper::rollout {
namespace {

constexpr std::uint64_t kEngines = 48;
constexpr std::uint64_t kPrompts = 1536;
constexpr std::uint64_t kGroup = 16;

actors::SimulationSettings settings() {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  actors::SimulationSettings s;
  s.cluster = **catalog.hardware("cm384");
  s.model = **catalog.model("qwen3-235b-a22b");
  s.config.rollout.tp = 4;
  s.config.rollout.ep = 16;
  s.config.trainer.tp = 4;
  s.config.trainer.ep = 16;
  s.config.prompt.mean = 1024;
  s.config.prompt.cap = Tokens(4096);
  s.config.response.mean = 8192;
  s.config.response.cap = Tokens(32768);
  s.cards = 8;
  s.trainer_cards = 64;
  s.rollout_cards = 8 * kEngines;
  s.concurrency = 256;
  return s;
}

struct Outcome {
  double wall = 0;
  double virtual_seconds = 0;
  std::int64_t ended = 0, tokens = 0, steps = 0, preemptions = 0, messages = 0;
};

Outcome simulate(const actors::SimulationSettings& s) {
  using Wall = std::chrono::steady_clock;
  const auto begin = Wall::now();
  Outcome result;
  actors::Outbox out([&](actors::OutgoingMessage m) {
    ++result.messages;
    if (m.tag != actors::CountedGenerated::kTag)
      return;
    const auto report =
        *actors::IncomingMessage::from(std::move(m)).decode<actors::CountedGenerated>();
    result.ended += static_cast<std::int64_t>(report.items.size());
    for (const auto& item : report.items)
      result.tokens += item.tokens.count();
  });
  std::vector<std::unique_ptr<SimulatedRollout>> engines;
  using Next = std::pair<Time, std::uint64_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  for (std::uint64_t e = 0; e < kEngines; ++e) {
    engines.push_back(std::make_unique<SimulatedRollout>(s, 1, PolicyVersion(0)));
    if (const Status status = engines.back()->start(Time{}, out); !status) {
      fmt::print(stderr, "{}\n", status.error().context);
      std::exit(1);
    }
  }
  for (std::uint64_t g = 0; g < kPrompts; ++g) {
    actors::CountedGenerate work;
    work.lease = LeaseId(g + 1);
    work.group = GroupId(g);
    for (std::uint64_t i = 0; i < kGroup; ++i)
      work.items.push_back({ResponseId(g * kGroup + i), Tokens(0)});
    static_cast<void>(engines[g % kEngines]->on_message(
        actors::IncomingMessage::from(actors::outgoing(work)), Time{}, out));
  }
  Time now{};
  for (std::uint64_t e = 0; e < kEngines; ++e)
    next.push({*engines[e]->next_event(), e});
  while (!next.empty()) {
    const auto [time, e] = next.top();
    next.pop();
    now = time;
    static_cast<void>(engines[e]->advance(now, out));
    if (const auto later = engines[e]->next_event())
      next.push({*later, e});
  }
  for (const auto& engine : engines) {
    result.steps += engine->counters().decode_steps;
    result.preemptions += engine->counters().preemptions;
  }
  result.virtual_seconds = seconds(now);
  result.wall = std::chrono::duration<double>(Wall::now() - begin).count();
  return result;
}

bool measure(std::string_view name, const actors::SimulationSettings& s, int repetitions) {
  std::vector<double> walls;
  Outcome last;
  for (int i = 0; i < repetitions; ++i) {
    last = simulate(s);
    walls.push_back(last.wall);
  }
  std::sort(walls.begin(), walls.end());
  const double median = walls[walls.size() / 2];
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{:<9} {:.4f} s median of {} ({:.4f} to {:.4f}), {:.0f} requests/s, {} MiB peak\n",
             name,
             median,
             repetitions,
             walls.front(),
             walls.back(),
             static_cast<double>(last.ended) / median,
             usage.ru_maxrss / 1024);
  fmt::print(
      "          {} ended, {} tokens, {} decode steps, {} preemptions, {} messages, "
      "{:.1f} virtual s\n",
      last.ended,
      last.tokens,
      last.steps,
      last.preemptions,
      last.messages,
      last.virtual_seconds);
  return last.ended == static_cast<std::int64_t>(kPrompts * kGroup);
}

int run(int repetitions) {
  actors::SimulationSettings s = settings();
  const bool whole = measure("simulate", s, repetitions);
  s.config.rollout.kv_share /= 10;
  return measure("pressed", s, repetitions) && whole ? 0 : 1;
}

}  // namespace
}  // namespace temper::rollout

int main(int argc, char** argv) {
  return temper::rollout::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 5);
}
