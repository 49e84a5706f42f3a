// What of a placement that does not fit exceeds its memory most, and the nearest single change that
// would fit.
#pragma once

#include "orchestrator/pipeline/simulated_memory.hpp"

#include <string>
#include <vector>

namespace temper::orchestrator {

/// Bytes by which the fullest phase exceeds a capacity; the phase is none if all fit.
struct Excess {
  const PhaseLedger* phase = nullptr;
  double device = 0;
  double host = 0;
  double worst() const { return std::max(device, host); }
};
Excess largest_excess(const actors::SimulationSettings& settings,
                      const std::vector<PhaseLedger>& phases);

/// `text`, and the nearest change of one key with which every phase fits.
std::string with_nearest_change(std::string text, const SimulatedPlacement& placement);

}  // namespace temper::orchestrator
