// Checks that the Python modules of a configuration can be imported.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// Imports each function and class once, with the interpreter and the working folder of its worker.
/// An import that exceeds the time limit is not reported. Requires: the interpreters exist.
std::vector<BrokenRule> broken_imports(const PipelineConfig& config);

}  // namespace temper::orchestrator
