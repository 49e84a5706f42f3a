#include "orchestrator/pipeline/switch_plan.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

using actors::PhaseLedger;
using actors::SimulatedPlacement;

/// Bytes of the KV cache per device during generation.
double cache_bytes(const std::vector<PhaseLedger>& phases) {
  const auto rollout = std::ranges::find(phases, "kv_alloc", &PhaseLedger::phase);
  double bytes = 0;
  for (const PhaseLedger::Part& part : rollout->parts)
    bytes += part.memory.device.kv_cache;
  return bytes;
}

enum class Cache { Last, First };

bool can_be(const SimulatedPlacement& p, Cache order) {
  const auto phases = memory_phases(p);
  if (!phases)
    return false;
  const double early = order == Cache::First ? cache_bytes(*phases) : 0;
  return std::ranges::all_of(*phases, [&](const PhaseLedger& phase) {
    const bool resharding = phase.phase == "reshard" || phase.phase == "bind";
    return fits(phase, {.device = resharding ? early : 0});
  });
}

std::optional<double> largest_kv_share(SimulatedPlacement p, Cache order) {
  for (int hundredths = 100; hundredths > 0; --hundredths) {
    p.run.config.rollout.kv_share = hundredths / 100.0;
    if (can_be(p, order))
      return p.run.config.rollout.kv_share;
  }
  return std::nullopt;
}

}  // namespace

SwitchPlan predict_switch(const SimulatedPlacement& p) {
  const sim_hw::Fabric fabric = sim_hw::make_fabric(p.run.cluster);
  const actors::SimulationSettings engine = actors::switching_engine(p);
  const double parked = actors::moved_bytes(actors::trainer_memory(p.run));
  const auto onload = [&](double bytes) { return actors::onload_seconds(fabric, p.run, bytes); };
  const auto offload = [&](double bytes) { return actors::offload_seconds(fabric, p.run, bytes); };
  SwitchPlan plan;
  plan.to_rollout = {
      {"offload_optimizer", offload(parked)},
      {"reshard", actors::publish_seconds(fabric, engine), DeadlineKind::StageWeights},
      {"bind", actors::swap_seconds(fabric, engine), DeadlineKind::CommitWeights},
      {"allocate_kv", actors::cache_seconds(engine)}};
  plan.to_training = {{"interrupt", 0}, {"free_kv", 0}, {"free_weights", 0}};
  if (p.reference == actors::ReferencePlace::InTurn) {
    const double weights = actors::reference_memory(actors::one_reference(p)).device.weights;
    plan.to_training.push_back({"onload_reference", onload(weights)});
    plan.to_training.push_back({"offload_reference", offload(weights)});
  }
  plan.to_training.push_back({"onload_optimizer", onload(parked)});
  return plan;
}

OtherOrders predict_other_orders(const SimulatedPlacement& p) {
  const sim_hw::Fabric fabric = sim_hw::make_fabric(p.run.cluster);
  return {largest_kv_share(p, Cache::Last),
          largest_kv_share(p, Cache::First),
          actors::onload_seconds(fabric, p.run, actors::trainer_memory(p.run).device.weights)};
}

}  // namespace temper::orchestrator
