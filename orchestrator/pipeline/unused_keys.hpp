// Keys of `simulation` and `payloads` that another key leaves without effect, such as the mean of
// lengths that are read from a trace. The configuration of a run has every key, so a key counts as
// given if it differs from its default.
//
// Not rejected: keys that a number switches off, such as the acceptance of drafts at depth 0, the
// spread of constant lengths, and mechanisms that a model has no use for. Sweeps need them.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "orchestrator/pipeline/payloads_section.hpp"
#include "orchestrator/pipeline/rules.hpp"

#include <string>

namespace temper::orchestrator {

/// `unset`: these lengths by default. `key`: that of the section.
void check_unused_keys(const std::string& key,
                       const actors::LengthConfig& lengths,
                       const actors::LengthConfig& unset,
                       Rules& rules);
void check_unused_keys(const std::string& key, const actors::LatencyConfig& latency, Rules& rules);
/// Of faults and of loads of experts.
void check_unused_keys(const actors::SimulationConfig& config, Rules& rules);
void check_unused_keys(const PayloadsSection& payloads, Rules& rules);

}  // namespace temper::orchestrator
