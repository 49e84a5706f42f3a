// Checks, before a run, whether a placement on simulated hardware fits in memory.
// actors/simulation/memory_phases.hpp computes the bytes of each phase; this file derives its
// inputs from a configuration, and reports what does not fit with the nearest change that would.
#pragma once

#include "actors/simulation/memory_phases.hpp"
#include "orchestrator/pipeline/resolve.hpp"

namespace temper::orchestrator {

/// Requires: simulated hardware.
actors::SimulatedPlacement simulated_placement(const ResolvedPipeline& pipeline);
/// The same for parts that do not come from one pipeline, for instance in a search over layouts.
actors::SimulatedPlacement simulated_placement(const PipelineConfig& config,
                                               const PlacementConfig& cards,
                                               const actors::SimulatedRun& run);

/// Largest bytes on a device, and in host memory per device.
struct MoreBytes {
  double device = 0, host = 0;
};
/// Whether every phase fits if this much more is held.
bool fits(const actors::PhaseLedger& phase, const MoreBytes& more = {});

/// Error: a phase is impossible (actors::memory_phases()) or exceeds a capacity. The message has
/// the ledger of the phase that exceeds its capacity most, and the nearest single change that fits.
Status check_memory(const actors::SimulatedPlacement& placement);

}  // namespace temper::orchestrator
