// Whether a run finds what its configuration names in Python.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// Imports each function and class once, in the interpreter and the folder that its worker would
/// have. What only takes long is not judged. Requires: the interpreters are there.
std::vector<BrokenRule> broken_imports(const PipelineConfig& config);

}  // namespace temper::orchestrator
