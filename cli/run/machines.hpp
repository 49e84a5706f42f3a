// The machines that the map of a simulated run's cards shows.
#pragma once

#include "cli/view/card_map.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <vector>

namespace temper::cli {

/// One, or one for each of several clusters. Requires: simulated hardware.
std::vector<MachineShape> machines_of(const orchestrator::ResolvedPipeline& pipeline);

}  // namespace temper::cli
