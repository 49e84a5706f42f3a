// A reference on simulated hardware: the rules of its cards, its model and its layout
// (`simulation.reference`).
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <optional>
#include <string>

namespace temper::orchestrator {

/// The model of `simulation.reference.model`; empty if it is unset or has the dimensions of
/// `policy`. Error: no such description.
Result<std::optional<sim_hw::ModelSpec>> reference_model(const actors::SimulationConfig& config,
                                                         const sim_hw::ModelSpec& policy,
                                                         sim_hw::Catalog& catalog);

/// Checks everything but its layout. `placement`: resolve_placement() of the configuration.
void check_simulated_reference(const PipelineConfig& config,
                               const PlacementConfig& placement,
                               sim_hw::Catalog& catalog,
                               Rules& rules);

/// Checks its layout, with no regard to memory. `reference`: settings of the actor.
void check_reference_layout(const actors::SimulationSettings& reference, Rules& rules);

/// "DeepSeek-V3 with tp 8, pp 1, ep 64, cp 1 on 64 devices of cm384". `reference`: settings of the
/// actor.
std::string reference_text(const actors::SimulationSettings& reference);

}  // namespace temper::orchestrator
