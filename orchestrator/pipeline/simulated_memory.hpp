// Whether a placement on simulated hardware fits, before it runs. The bytes of every phase are
// those of actors/simulation/memory_phases.hpp; here a configuration becomes counts of who is
// where, and what does not fit is told with the nearest change of a key that would.
#pragma once

#include "actors/simulation/memory_phases.hpp"
#include "orchestrator/pipeline/resolve.hpp"

namespace temper::orchestrator {

/// Requires: simulated hardware.
actors::SimulatedPlacement simulated_placement(const ResolvedPipeline& pipeline);
/// The same of parts that are not of one pipeline, as where a search tries other layouts.
actors::SimulatedPlacement simulated_placement(const PipelineConfig& config,
                                               const PlacementConfig& cards,
                                               const actors::SimulatedRun& run);

/// Bytes on each device, and of the host for each.
struct MoreBytes {
  double device = 0, host = 0;
};
/// Whether a phase exceeds no capacity, with so much more.
bool fits(const actors::PhaseLedger& phase, const MoreBytes& more = {});

/// Every phase can be (actors::memory_phases()), and none exceeds a capacity. An error prints the
/// ledger of the phase that exceeds it most and the nearest single change that fits.
Status check_memory(const actors::SimulatedPlacement& placement);

}  // namespace temper::orchestrator
