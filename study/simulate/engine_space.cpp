#include "study/simulate/engine_space.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_memory.hpp"
#include "rollout/simulated/engine_cost.hpp"
#include "sim_hw/plan/plan_words.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

namespace temper::study {
namespace {

/// Divisors of `n` that also divide the devices.
std::vector<std::int64_t> cuts(std::int64_t n, std::int64_t devices) {
  std::vector<std::int64_t> out = sim_hw::divisors_up_to(n, devices);
  std::erase_if(out, [&](std::int64_t cut) { return devices % cut != 0; });
  return out;
}

}  // namespace

std::vector<std::int64_t> engine_tps(const sim_hw::ModelSpec& model, std::int64_t devices) {
  return cuts(model.heads, devices);
}

std::vector<std::int64_t> engine_eps(const sim_hw::ModelSpec& model, std::int64_t devices) {
  return cuts(model.moe ? model.moe->experts : 1, devices);
}

actors::SimulationSettings engine_settings(const actors::SimulatedRun& run,
                                           const orchestrator::PipelineConfig& config,
                                           const orchestrator::PlacementConfig& cards) {
  actors::SimulationSettings s{run};
  actors::look_at(s, actors::RoleKind::Rollout);
  s.rollout_cards = std::ssize(cards.rollout);
  s.cards = s.rollout_cards / config.rollout.replicas;
  s.concurrency = config.rollout.concurrency;
  s.colocated = traits_of(config.placement.mode).alternates();
  return s;
}

EngineRate engine_rate(const actors::SimulationSettings& engine,
                       const sim_hw::RolloutLengths& lengths) {
  rollout::EngineCost cost(engine);
  EngineRate out;
  out.replicas = cost.replicas();
  const std::int64_t wanted =
      std::max<std::int64_t>(1, (engine.concurrency + out.replicas - 1) / out.replicas);
  const auto cached = static_cast<double>(actors::kv_tokens(engine).count());
  const std::int64_t slots = std::clamp<std::int64_t>(sim_hw::slots_in(lengths, cached), 1, wanted);
  out.running = std::min<std::int64_t>(slots * out.replicas, engine.concurrency);
  const auto n = static_cast<double>(out.running);
  const auto context = static_cast<std::int64_t>(std::ceil(n * lengths.context));
  out.step = cost.decode({out.running, context}).seconds(1);
  const auto prompt =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(lengths.prompt)));
  const std::int64_t of_pass =
      std::max<std::int64_t>(1, out.replicas * engine.config.rollout.prefill_tokens / prompt);
  const double pass = cost.prefill(
      std::deque<rollout::PrefillPiece>(static_cast<std::size_t>(of_pass), {.tokens = prompt}), 0);
  out.prefill = pass / static_cast<double>(of_pass) * n / lengths.response;
  return out;
}

}  // namespace temper::study
