// Shows a running job. On a terminal: a live view that is redrawn in place, below earlier output.
// Elsewhere: one line every few seconds. Notable events are printed as lines above it.
#pragma once

#include "cli/view/card_map.hpp"
#include "cli/view/render.hpp"
#include "core/clock.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

struct ViewOptions {
  int fd = 1;
  enum class Mode { Live, Plain } mode = Mode::Plain;
  Colours colours = Colours::Off;
  std::string name;                    ///< Name of the run.
  std::string run_dir;                 ///< Printed in the closing summary.
  std::string trace = "trace.json";    ///< Trace file; printed in the closing summary.
  std::vector<MachineShape> machines;  ///< Machines whose card map is printed at the end.
  bool drawn = false;                  ///< Rewards are random numbers.
};

/// Live with colors if `fd` is a terminal; plain on request or if TERM is "dumb"; without colors if
/// NO_COLOR is set.
enum class OutputForm { Auto, Plain };
ViewOptions detect_view(int fd, OutputForm form);
/// Columns to use: all but the last of the terminal; elsewhere a fixed maximum.
std::size_t view_width(const ViewOptions& options);

class TerminalView {
 public:
  static constexpr Duration kLivePeriod = std::chrono::milliseconds(200);
  static constexpr Duration kPlainPeriod = std::chrono::seconds(5);

  /// `wall` paces the drawing, even if the run uses virtual time. It must outlive this object.
  TerminalView(ViewOptions options, const Clock& wall)
      : options_(std::move(options)), wall_(wall) {}

  /// Prints the events of a record. Call it for every record.
  void feed(const orchestrator::Record& record, const orchestrator::SchedulerConfig& config);
  /// Prints lines above the live view; none if `lines` is empty.
  void print(const std::vector<std::string>& lines);
  /// Draws if a drawing is due; cheap otherwise.
  void refresh(const orchestrator::RunMetrics& metrics, const orchestrator::RunTick& tick);
  /// Draws this frame now; for a run of another process.
  void show(const Frame& frame);
  /// Draws the last view, the card map and the closing summary.
  void close(const orchestrator::RunMetrics& metrics, const orchestrator::Summary& summary);

 private:
  Frame frame(const orchestrator::RunMetrics& metrics,
              const orchestrator::RunTick* tick,
              Time now) const;
  void draw(const Frame& frame);
  void erase(std::string& out);
  void write(const std::string& text) const;

  const ViewOptions options_;
  const Clock& wall_;
  std::optional<Time> drawn_at_;
  std::size_t lines_ = 0;  ///< Of the picture on the screen.
  std::size_t width_ = 0;  ///< It was drawn for.
  std::string picture_;
  std::size_t line_at_step_ = 0;
  std::uint64_t groups_failed_ = 0;
};

}  // namespace temper::cli
