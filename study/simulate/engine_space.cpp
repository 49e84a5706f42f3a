#include "study/simulate/engine_space.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_memory.hpp"
#include "rollout/simulated/prefill_instance.hpp"
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

/// Seconds of prefill for each decode step. A prefill instance works beside the decode steps, and
/// only adds what it takes longer.
double prefill_per_step(const actors::SimulationSettings& engine,
                        const sim_hw::RolloutLengths& lengths,
                        const EngineRate& rate,
                        const rollout::EngineCost& cost) {
  const auto prompt =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(lengths.prompt)));
  const rollout::PrefillPiece piece{.tokens = prompt};
  const auto n = static_cast<double>(rate.running);
  const auto pass = [&](std::int64_t step_tokens) {
    return std::deque(static_cast<std::size_t>(std::max<std::int64_t>(1, step_tokens / prompt)),
                      piece);
  };
  if (engine.config.rollout.prefill_cards == 0) {
    const auto pieces = pass(rate.replicas * engine.config.rollout.prefill_tokens);
    return cost.prefill(pieces, 0) / static_cast<double>(pieces.size()) * n / lengths.response;
  }
  const rollout::PrefillInstance instance(engine);
  const auto pieces = pass(instance.step_tokens());
  const double seconds = instance.cost(pieces).seconds / static_cast<double>(pieces.size());
  return std::max(0.0, seconds * n / lengths.response - rate.step);
}

}  // namespace

std::vector<std::int64_t> engine_tps(const sim_hw::ModelSpec& model, std::int64_t devices) {
  return cuts(model.heads, devices);
}

std::vector<std::int64_t> engine_eps(const sim_hw::ModelSpec& model,
                                     std::int64_t redundant_experts,
                                     std::int64_t devices) {
  const std::int64_t experts = model.moe ? model.moe->experts : 1;
  std::vector<std::int64_t> out = cuts(experts + redundant_experts, devices);
  std::erase_if(out, [&](std::int64_t ep) { return redundant_experts > experts * (ep - 1); });
  return out;
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
  out.prefill = prefill_per_step(engine, lengths, out, cost);
  return out;
}

}  // namespace temper::study
