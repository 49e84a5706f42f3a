// Frames and summaries as text. All functions are pure.
#pragma once

#include "cli/view/canvas.hpp"
#include "cli/view/frame.hpp"
#include "orchestrator/metrics/summary.hpp"

namespace temper::cli {

/// The live view: lines of at most `width` columns, each ended by a line break; never empty. Shows
/// as many actors as fit into `rows` lines; with 0, a dozen.
std::string render_frame(const Frame& frame,
                         std::size_t width,
                         Colours colours,
                         std::size_t rows = 0);

/// The key figures in one line, without a line break; for logs and pipes.
std::string render_line(const Frame& frame);

/// Facts that the closing summary shows besides the figures of the run.
struct ClosingFacts {
  std::string run_dir;
  std::string trace = "trace.json";  ///< The trace file for Perfetto.
  bool drawn = false;                ///< As in Frame.
};
/// The closing summary of a run. Paths and commands are never cut, so that they can be copied.
std::string render_closing(const orchestrator::Summary& summary,
                           const ClosingFacts& closing,
                           std::size_t width,
                           Colours colours);

/// One line per notable event of a record: restarts, rollbacks, resumes, checkpoints, evaluations.
/// Empty for other records. `config` has the names of the actors.
std::vector<std::string> event_lines(const orchestrator::Record& record,
                                     const orchestrator::SchedulerConfig& config);

}  // namespace temper::cli
