// What `hardware: simulated` adds to a pipeline: descriptions looked up, traces read, defaults that
// fit virtual time, rules over its keys.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <functional>

namespace temper::orchestrator {

/// What is true of the run, with descriptions and traces read.
/// `placement`: resolve_placement() of the configuration.
/// Errors: as check_simulation() has them.
Result<actors::SimulatedRun> resolve_simulation(const PipelineConfig& config,
                                                const PlacementConfig& placement);

/// The run and the share of the actor in this slot of it. Requires: simulated hardware.
actors::SimulationSettings actor_settings(const ResolvedPipeline& pipeline, const ActorSpec& slot);

/// Every broken rule. `placement`: as above. Requires: config.hardware is Simulated.
std::vector<BrokenRule> check_simulation(const PipelineConfig& config,
                                         const PlacementConfig& placement);

/// Gives deadlines and checkpoints that are not `given` values that fit virtual hours.
void set_simulated_defaults(PipelineConfig& config,
                            const std::function<bool(const std::string& key)>& given);

}  // namespace temper::orchestrator
