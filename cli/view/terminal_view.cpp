#include "cli/view/terminal_view.hpp"

#include "orchestrator/record/sentences.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace temper::cli {
namespace {

struct Size {
  std::size_t columns = 100, rows = 50;
};

Size size_of(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

/// The first `rows` lines of `text`.
std::string_view first_lines(std::string_view text, std::size_t rows, std::size_t& lines) {
  std::size_t end = 0;
  for (lines = 0; lines < rows; ++lines) {
    const std::size_t line_end = text.find('\n', end);
    if (line_end == std::string_view::npos)
      break;
    end = line_end + 1;
  }
  return text.substr(0, end);
}

}  // namespace

ViewOptions detect_view(int fd, OutputForm form) {
  ViewOptions options;
  options.fd = fd;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  if (form == OutputForm::Plain || dumb || isatty(fd) == 0)
    return options;
  options.mode = ViewOptions::Mode::Live;
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour == nullptr || *no_colour == '\0')
    options.colours = Colours::On;
  return options;
}

std::size_t view_width(const ViewOptions& options) {
  // The last column stays free: some terminals wrap when it is written.
  return options.mode == ViewOptions::Mode::Live ? size_of(options.fd).columns - 1 : 160;
}

void TerminalView::write(const std::string& text) const {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(options_.fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return;  // the terminal is gone; the run continues
    done += static_cast<std::size_t>(n);
  }
}

/// Moves the cursor to the start of the picture and clears from there.
void TerminalView::erase(std::string& out) {
  if (lines_ > 0)
    out += fmt::format("\x1b[{}A", lines_);
  out += "\r\x1b[J";
  lines_ = 0;
}

void TerminalView::feed(const orchestrator::Record& record,
                        const orchestrator::SchedulerConfig& config) {
  const auto* saved = std::get_if<orchestrator::event::CheckpointSaved>(&record.event);
  if (options_.mode == ViewOptions::Mode::Live && saved != nullptr && saved->error.empty())
    return;  // the live view counts checkpoints
  std::vector<std::string> said = event_lines(record, config);
  for (const orchestrator::Command& command : record.commands) {
    const auto* release = std::get_if<orchestrator::command::Release>(&command);
    if (release == nullptr || release->outcome != orchestrator::Outcome::Failed)
      continue;
    if (std::has_single_bit(++groups_failed_)) {  // the 1st, 2nd, 4th, 8th ...
      said.push_back(fmt::format("{:>8} group {} failed ({} so far): {}",
                                 clock_text(record.time.time_since_epoch()),
                                 release->group,
                                 groups_failed_,
                                 sentence(release->reason, config.actors)));
    }
  }
  print(said);
}

void TerminalView::print(const std::vector<std::string>& lines) {
  const bool live = options_.mode == ViewOptions::Mode::Live;
  std::string text;
  for (const std::string& line : lines) {
    Canvas canvas(live ? size_of(options_.fd).columns : 1000, options_.colours);
    canvas.text(line).line();
    text += canvas.take();
  }
  if (text.empty())
    return;
  if (live && lines_ > 0) {
    const std::size_t drawn = lines_;
    std::string out;
    erase(out);
    lines_ = drawn;
    text = out + text + picture_;
  }
  write(text);
}

Frame TerminalView::frame(const orchestrator::RunMetrics& metrics,
                          const orchestrator::RunTick* tick,
                          Time now) const {
  Frame f = make_frame(options_.name, metrics, tick, now);
  f.simulated = !options_.machines.empty();
  f.drawn = options_.drawn;
  return f;
}

void TerminalView::refresh(const orchestrator::RunMetrics& metrics,
                           const orchestrator::RunTick& tick) {
  const Time wall = wall_.now();
  const bool live = options_.mode == ViewOptions::Mode::Live;
  if (metrics.timeline().cards().empty())
    return;  // not started yet
  if (drawn_at_ && wall - *drawn_at_ < (live ? kLivePeriod : kPlainPeriod))
    return;
  if (live) {
    drawn_at_ = wall;
    draw(frame(metrics, &tick, tick.now));
    return;
  }
  const std::uint64_t step = metrics.history().count();
  if (drawn_at_ && step == line_at_step_ && wall - *drawn_at_ < 6 * kPlainPeriod)
    return;  // nothing new
  drawn_at_ = wall;
  line_at_step_ = step;
  write(render_line(frame(metrics, &tick, tick.now)) + "\n");
}

void TerminalView::show(const Frame& frame) {
  if (options_.mode == ViewOptions::Mode::Live) {
    draw(frame);
  } else if (frame.step != line_at_step_ || !drawn_at_) {
    drawn_at_ = wall_.now();
    line_at_step_ = frame.step;
    write(render_line(frame) + "\n");
  }
}

void TerminalView::draw(const Frame& frame) {
  const Size size = size_of(options_.fd);
  // The last column stays free: some terminals wrap when it is written.
  const std::size_t rows = std::max<std::size_t>(2, size.rows) - 1;
  const std::string text = render_frame(frame, size.columns - 1, options_.colours, rows);
  std::size_t lines = 0;
  const std::string_view shown = first_lines(text, rows, lines);
  std::string out;
  if (width_ != size.columns && lines_ > 0) {
    out += "\x1b[H\x1b[J";  // the terminal wrapped the old lines: their start is unknown
    lines_ = 0;
  }
  if (lines_ > 0)
    out += fmt::format("\x1b[{}A\r", lines_);
  picture_.clear();
  for (std::size_t begin = 0; begin < shown.size();) {
    const std::size_t end = shown.find('\n', begin);
    picture_ += shown.substr(begin, end - begin);
    picture_ += "\x1b[K\n";
    begin = end + 1;
  }
  out += picture_;
  out += "\x1b[J";
  lines_ = lines;
  width_ = size.columns;
  write(out);
}

void TerminalView::close(const orchestrator::RunMetrics& metrics,
                         const orchestrator::Summary& summary) {
  const bool live = options_.mode == ViewOptions::Mode::Live;
  const Frame last = frame(metrics, nullptr, metrics.wall());
  if (live) {
    draw(last);
  } else {
    write(render_line(last) + "\n");
  }
  const std::size_t width = view_width(options_);
  if (!options_.machines.empty()) {
    const CardMap map = make_card_map(summary, metrics.config().actors, options_.machines);
    write("\n" + render_card_map(map, width, options_.colours));
  }
  write(render_closing(
      summary, {options_.run_dir, options_.trace, options_.drawn}, width, options_.colours));
}

}  // namespace temper::cli
