// What `hardware: simulated` adds to a pipeline: descriptions looked up, traces read, defaults that
// fit virtual time, rules over its keys.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <functional>

namespace temper::orchestrator {

/// The settings of the run, with descriptions and traces read; those of one actor are open still.
/// `placement`: resolve_placement() of the configuration.
/// Errors: as check_simulation() has them.
Result<actors::SimulationSettings> resolve_simulation(const PipelineConfig& config,
                                                      const PlacementConfig& placement);

/// Those of the actor in this slot. Requires: `settings` are of the same configuration.
actors::SimulationSettings actor_settings(const actors::SimulationSettings& settings,
                                          const ActorSpec& slot);

/// Every broken rule. `placement`: as above. Requires: config.hardware is Simulated.
std::vector<BrokenRule> check_simulation(const PipelineConfig& config,
                                         const PlacementConfig& placement);

/// Gives deadlines and checkpoints that are not `given` values that fit virtual hours.
void set_simulated_defaults(PipelineConfig& config,
                            const std::function<bool(const std::string& key)>& given);

}  // namespace temper::orchestrator
