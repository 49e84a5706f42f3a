#include "orchestrator/pipeline/card_shares.hpp"

#include "actors/simulation/lengths.hpp"
#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {
namespace {

/// Share of the time that stages of the pipeline wait for the first and last micro-batches. Larger
/// parts cost less, and keep cards from rollout for longer.
constexpr double kMostWaiting = 0.05;

/// Trainer, reference and rollout on the cards of so many engines.
actors::SimulatedPlacement on_share(const actors::SimulatedPlacement& whole, std::int64_t engines) {
  actors::SimulatedPlacement part = whole;
  part.engines = engines;
  part.rollout_cards = whole.rollout_cards / whole.engines * engines;
  part.run.trainer_cards = part.rollout_cards;
  if (part.reference == actors::ReferencePlace::InTurn)
    part.reference_cards = part.rollout_cards;
  return part;
}

bool is_share(const actors::SimulatedPlacement& p) {
  if (!actors::check_trainer(p.run))
    return false;
  if (p.reference == actors::ReferencePlace::InTurn &&
      !actors::check_reference(actors::one_reference(p)))
    return false;
  const auto phases = actors::memory_phases(p);
  if (!phases)
    return false;
  return std::ranges::all_of(*phases, [](const actors::PhaseLedger& phase) { return fits(phase); });
}

/// Every phase on all cards, and on each of the shares, largest first.
std::vector<actors::PhaseLedger> ledger_on(const actors::SimulatedPlacement& whole,
                                           const std::vector<std::int32_t>& shares) {
  std::vector<actors::PhaseLedger> ledger;
  const auto add = [&](const actors::SimulatedPlacement& p) {
    if (auto phases = actors::memory_phases(p))
      ledger.insert(ledger.end(), phases->begin(), phases->end());
  };
  if (std::ranges::find(shares, whole.engines) == shares.end()) {
    actors::SimulatedPlacement start = whole;
    start.keeps_gradients = false;  // The trainer only starts there.
    add(start);
  }
  for (auto share = shares.rbegin(); share != shares.rend(); ++share)
    add(on_share(whole, *share));
  return ledger;
}

}  // namespace

std::vector<std::int32_t> card_shares(const ResolvedPipeline& pipeline) {
  std::vector<std::int32_t> shares;
  if (pipeline.config.placement.switching != Switching::OneByOne)
    return shares;
  const actors::SimulatedPlacement whole = simulated_placement(pipeline);
  for (std::int64_t engines = 1; engines <= whole.engines; ++engines) {
    if (is_share(on_share(whole, engines)))
      shares.push_back(static_cast<std::int32_t>(engines));
  }
  return shares;
}

std::vector<actors::PhaseLedger> memory_ledger(const ResolvedPipeline& pipeline) {
  return ledger_on(simulated_placement(pipeline), pipeline.shares);
}

std::optional<double> room_for_caches(const ResolvedPipeline& pipeline) {
  actors::SimulatedPlacement whole = simulated_placement(pipeline);
  whole.keeps_gradients = false;
  const auto phases = actors::memory_phases(whole);
  if (!phases)
    return std::nullopt;
  std::optional<double> room = actors::host_left(*phases);
  actors::SimulatedPlacement no_arrivals = simulated_placement(pipeline);
  no_arrivals.one_by_one = false;
  const std::optional<double> on_shares =
      actors::host_left(ledger_on(no_arrivals, pipeline.shares));
  if (room && on_shares)
    room = std::min(*room, *on_shares);
  return room;
}

std::vector<std::int32_t> share_parts(const ResolvedPipeline& pipeline,
                                      const std::vector<std::int32_t>& shares) {
  const actors::SimulatedPlacement whole = simulated_placement(pipeline);
  const actors::SimulationConfig& c = whole.run.config;
  const sim_hw::RolloutLengths lengths = actors::drawn_lengths(c.prompt, c.response);
  const double group_tokens =
      pipeline.config.algorithm.responses_per_group * (lengths.prompt + lengths.response);
  std::vector<std::int32_t> parts;
  for (const std::int32_t share : shares) {
    const sim_hw::Layout layout = actors::trainer_layout(on_share(whole, share).run);
    const double waiting = static_cast<double>(layout.pp - 1) / static_cast<double>(layout.vpp);
    const double tokens = waiting / kMostWaiting * static_cast<double>(layout.dp) *
                          static_cast<double>(c.trainer.micro_batch_tokens);
    parts.push_back(std::max(1, static_cast<std::int32_t>(std::ceil(tokens / group_tokens))));
  }
  return parts;
}

std::int64_t kv_slots(const ResolvedPipeline& pipeline) {
  return actors::kv_slots(actors::switching_engine(simulated_placement(pipeline)));
}

}  // namespace temper::orchestrator
