// The notes below predictions: constants that were not measured, and what a plan leaves out.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"

#include <iosfwd>
#include <string>

namespace temper::cli {

/// The note for a pipeline; empty on local hardware, if every constant was measured, or for an
/// invalid configuration.
std::string constants_note(const Result<orchestrator::PipelineConfig>& config);

/// The note that a plan leaves out tool calls; empty for a pipeline without them.
std::string tools_note(const orchestrator::PipelineConfig& config);

/// The stream for notes: `out`, or, if a program reads `out`, `err` after a flush of `out`.
std::ostream& beside(bool for_programs, std::ostream& out, std::ostream& err);

}  // namespace temper::cli
