// Shows a run while it goes on. On a terminal: a picture redrawn in place, below whatever was
// printed before; the last one stays. Elsewhere: a line every few seconds. Events worth a line of
// their own scroll by above.
#pragma once

#include "cli/view/card_map.hpp"
#include "cli/view/render.hpp"
#include "core/clock.hpp"

#include <optional>
#include <string>

namespace temper::cli {

struct ViewOptions {
  int fd = 1;
  enum class Mode { Live, Plain } mode = Mode::Plain;
  Colours colours = Colours::Off;
  std::string name;                    ///< Of the run.
  std::string run_dir;                 ///< As named at the end.
  std::string trace = "trace.json";    ///< The same.
  std::vector<MachineShape> machines;  ///< Whose cards are shown as a map at the end.
  bool drawn = false;                  ///< Its rewards are drawn at random.
};

/// Live and coloured if `fd` is a terminal that can; plain if `plain` or TERM is dumb; without
/// colours if NO_COLOR is set.
enum class Wish { Auto, Plain };
ViewOptions detect_view(int fd, Wish wish);
/// Columns to write: those of the terminal, all but the last; elsewhere as wide as lines may be.
std::size_t view_width(const ViewOptions& options);

class TerminalView {
 public:
  static constexpr Duration kLivePeriod = std::chrono::milliseconds(200);
  static constexpr Duration kPlainPeriod = std::chrono::seconds(5);

  /// `wall` paces the drawing, whatever the time of the run does; it must outlive this.
  TerminalView(ViewOptions options, const Clock& wall)
      : options_(std::move(options)), wall_(wall) {}

  /// To be called for every record; prints its events.
  void feed(const orchestrator::Record& record, const orchestrator::SchedulerConfig& config);
  /// Draws if it is time to. Cheap otherwise: call it as often as you like.
  void refresh(const orchestrator::RunMetrics& metrics,
               const orchestrator::Scheduler& scheduler,
               Time now);
  /// Draws this, now: a run of another process.
  void show(const Frame& frame);
  /// The last picture, the map of the cards and the closing summary.
  void close(const orchestrator::RunMetrics& metrics, const orchestrator::Summary& summary);

 private:
  Frame frame(const orchestrator::RunMetrics& metrics,
              const orchestrator::Scheduler* scheduler,
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
