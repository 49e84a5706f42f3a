// The notes below predictions: constants that were not measured, and what a plan leaves out.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"

#include <iosfwd>
#include <span>
#include <string>

namespace temper::cli {

/// The note for a pipeline; empty on local hardware, or if every constant was measured.
std::string constants_note(const std::string& config, std::span<const std::string> sets);

/// The note that a plan leaves out tool calls; empty for a pipeline without them.
std::string tools_note(const orchestrator::PipelineConfig& config);

/// The stream for notes: `out`, or, if a program reads `out`, `err` after a flush of `out`.
std::ostream& beside(bool for_programs, std::ostream& out, std::ostream& err);

}  // namespace temper::cli
