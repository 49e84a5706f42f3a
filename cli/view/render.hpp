// Frames and summaries as text. Pure functions: the same input gives the same text.
#pragma once

#include "cli/view/canvas.hpp"
#include "cli/view/frame.hpp"
#include "orchestrator/metrics/summary.hpp"

namespace temper::cli {

/// The live view: lines of at most `width` columns, each ended by a line break. Never empty. Of
/// actors as many as there is room for in `rows` lines; 0: a dozen.
std::string render_frame(const Frame& frame,
                         std::size_t width,
                         Colours colours,
                         std::size_t rows = 0);

/// The key figures in one line, without a line break; for logs and pipes.
std::string render_line(const Frame& frame);

/// What a closing summary says besides its figures.
struct Closing {
  std::string run_dir;
  std::string trace = "trace.json";  ///< The file for Perfetto.
  bool drawn = false;                ///< As of a Frame.
};
/// What became of the run, at its end. Names of files and commands are never cut: they are for
/// copying.
std::string render_closing(const orchestrator::Summary& summary,
                           const Closing& closing,
                           std::size_t width,
                           Colours colours);

/// What is worth a line of its own in a record: restarts, rollbacks, resumes, checkpoints; nothing
/// for all others. `config` names the actors.
std::vector<std::string> event_lines(const orchestrator::Record& record,
                                     const orchestrator::SchedulerConfig& config);

}  // namespace temper::cli
