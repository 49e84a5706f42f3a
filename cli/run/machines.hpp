// The machine shapes for the card map of a simulated run.
#pragma once

#include "cli/view/card_map.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <vector>

namespace temper::cli {

/// One shape, or one per cluster. Precondition: simulated hardware.
std::vector<MachineShape> machines_of(const orchestrator::ResolvedPipeline& pipeline);

}  // namespace temper::cli
