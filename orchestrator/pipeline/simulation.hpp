// `hardware: simulated` in a pipeline: looks up descriptions, reads traces, sets defaults for
// virtual time, and checks its keys.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <functional>

namespace temper::orchestrator {

/// The simulated run, with descriptions and traces read. `placement`: resolve_placement() of the
/// configuration. Errors: those of check_simulation().
Result<actors::SimulatedRun> resolve_simulation(const PipelineConfig& config,
                                                const PlacementConfig& placement);

/// The simulated run as seen by the actor in this slot. Requires: simulated hardware.
actors::SimulationSettings actor_settings(const ResolvedPipeline& pipeline, const ActorSpec& slot);

/// The cards whose hosts have tensors of responses, as they lie in a placement.
actors::TensorPlaces tensor_places(const PlacementConfig& cards);

/// Reports every violated rule. `placement`: as above. Requires: config.hardware is Simulated.
std::vector<BrokenRule> check_simulation(const PipelineConfig& config,
                                         const PlacementConfig& placement);

/// The same configuration, with the contents of the files that its distributions name.
Result<actors::SimulationConfig> with_traces(actors::SimulationConfig config);

/// Every violated rule of what describes the agent of a local run to forecasts: `simulation.tools`
/// and, with them, `simulation.response`. None without them, or without an agent.
std::vector<BrokenRule> check_described_agent(const PipelineConfig& config);

/// Whether simulation.faults injects any fault: by rates or a trace on simulated hardware, by a
/// trace only on local hardware, where it acts on processes.
bool fails_by_plan(const PipelineConfig& config);

/// On local hardware, defaults for faults that are not `given`: a killed process may restart at
/// once, and a link is cut for one second.
void set_local_defaults(PipelineConfig& config,
                        const std::function<bool(const std::string& key)>& given);

/// Sets deadlines and checkpoint intervals that are not `given` to values that suit virtual time.
void set_simulated_defaults(PipelineConfig& config,
                            const std::function<bool(const std::string& key)>& given);

}  // namespace temper::orchestrator
