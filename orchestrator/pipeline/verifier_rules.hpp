// Rules of the `verifier` section.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

#include <string_view>

namespace temper::orchestrator {

/// Whether the text is "package.module:name".
bool names_python(std::string_view text);

/// Checks the keys of each verifier. rules_of_this_machine() checks programs, folders and packages.
void check_verifier(const PipelineConfig& config, Rules& rules);

}  // namespace temper::orchestrator
