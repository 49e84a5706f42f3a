#include "orchestrator/pipeline/card_shares.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// `keeps`: whether gradients persist between steps (stragglers.prepare).
bool is_share(const actors::SimulatedPlacement& p, bool keeps) {
  if (!actors::check_trainer(p.run))
    return false;
  if (p.reference == actors::ReferencePlace::InTurn &&
      !actors::check_reference(actors::one_reference(p)))
    return false;
  const auto phases = actors::memory_phases(p);
  if (!phases)
    return false;
  const double kept = keeps ? actors::trainer_memory(p.run).device.gradients : 0;
  return std::ranges::all_of(
      *phases, [&](const actors::PhaseLedger& phase) { return fits(phase, {.host = kept}); });
}

}  // namespace

std::vector<std::int32_t> card_shares(const ResolvedPipeline& pipeline) {
  std::vector<std::int32_t> shares;
  if (pipeline.config.placement.switching != Switching::OneByOne)
    return shares;
  const actors::SimulatedPlacement whole = simulated_placement(pipeline);
  for (std::int64_t engines = 1; engines <= whole.engines; ++engines) {
    actors::SimulatedPlacement part = whole;
    part.engines = engines;
    part.rollout_cards = whole.rollout_cards / whole.engines * engines;
    part.run.trainer_cards = part.rollout_cards;
    if (part.reference == actors::ReferencePlace::InTurn)
      part.reference_cards = part.rollout_cards;
    if (is_share(part, pipeline.config.stragglers.prepare))
      shares.push_back(static_cast<std::int32_t>(engines));
  }
  return shares;
}

}  // namespace temper::orchestrator
