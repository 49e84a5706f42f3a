// A configuration together with everything that follows from it: which actors there are, on which
// cards, and what simulated hardware they run on. It is worked out once, after the configuration is
// loaded and checked, and passed on from there; nobody derives a part of it again.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"

#include <optional>
#include <vector>

namespace temper::orchestrator {

struct ResolvedPipeline {
  PipelineConfig config;
  PlacementConfig placement;     ///< As resolve_placement() says.
  std::vector<ActorSpec> slots;  ///< As actor_slots() says.
  /// Of the run, as resolve_simulation() says; none unless the hardware is simulated.
  std::optional<actors::SimulatedRun> simulation;
  /// Simulated: bytes of a device's share of host memory that no role needs in any phase; none
  /// where a phase exceeds it.
  std::optional<double> host_left;
  std::vector<std::int32_t> shares;  ///< As card_shares() says.
};

/// Reads the descriptions and traces of a simulated configuration. Errors: as resolve_simulation()
/// has them; none on local hardware.
Result<ResolvedPipeline> resolve(PipelineConfig config);

/// The same without the settings of simulated hardware, for a run whose actors are not simulated
/// from them; `simulation` is none.
ResolvedPipeline resolve_cards(PipelineConfig config);

/// All that the scheduler needs to know of it.
SchedulerConfig scheduler_config(const ResolvedPipeline& pipeline);

}  // namespace temper::orchestrator
