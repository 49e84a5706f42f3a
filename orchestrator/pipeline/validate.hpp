// Rules over several keys of a pipeline.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

#include <optional>

namespace temper::orchestrator {

/// All violated rules. `longest_prompt`, once the task is known, is checked against the context.
std::vector<BrokenRule> validate(const PipelineConfig& config,
                                 std::optional<Tokens> longest_prompt = std::nullopt);

}  // namespace temper::orchestrator
