// Frames and summaries as text. Pure functions: the same input gives the same text.
#pragma once

#include "cli/view/canvas.hpp"
#include "cli/view/frame.hpp"
#include "orchestrator/metrics/summary.hpp"

namespace temper::cli {

/// The live view: lines of at most `width` columns, each ended by a line break. Never empty.
std::string render_frame(const Frame& frame, std::size_t width, Colours colours);

/// The key figures in one line, without a line break; for logs and pipes.
std::string render_line(const Frame& frame);

/// What became of the run, at its end. `trace`: the name of the file for Perfetto.
std::string render_closing(const orchestrator::Summary& summary,
                           std::string_view run_dir,
                           std::string_view trace,
                           std::size_t width,
                           Colours colours);

/// What is worth a line of its own in a record: restarts, rollbacks, resumes, checkpoints; nothing
/// for all others. `config` names the actors.
std::vector<std::string> event_lines(const orchestrator::Record& record,
                                     const orchestrator::SchedulerConfig& config);

}  // namespace temper::cli
