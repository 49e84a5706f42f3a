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

/// Whether anything is to fail by simulation.faults: on simulated hardware by rates or by a trace;
/// on local hardware by a trace only, which is played on processes.
bool fails_by_plan(const PipelineConfig& config);

/// On local hardware, what failures that are played on its processes do where it is not `given`: a
/// process that is killed can start again at once, a link is cut for a second.
void set_local_defaults(PipelineConfig& config,
                        const std::function<bool(const std::string& key)>& given);

/// Gives deadlines and checkpoints that are not `given` values that fit virtual hours.
void set_simulated_defaults(PipelineConfig& config,
                            const std::function<bool(const std::string& key)>& given);

}  // namespace temper::orchestrator
