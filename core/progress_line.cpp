#include "core/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace temper {

ProgressLine::ProgressLine(std::ostream& out, Output output, const Clock& clock, std::string name)
    : out_(out), output_(output), clock_(clock), name_(std::move(name)) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::show(std::string_view stage, std::string_view detail) {
  const Time now = clock_.now();
  const bool is_new = stage != stage_ || last_ == Time{};
  if (is_new) {
    stage_ = stage;
    stage_began_ = now;
  }
  std::string line = stage_;
  if (!detail.empty())
    line += fmt::format(": {}", detail);
  if (output_ == Output::Terminal) {
    if (line == shown_)
      return;
    shown_ = std::move(line);
    last_ = now;
    out_ << "\r\x1b[K" << shown_ << std::flush;
    return;
  }
  if (!is_new && now < last_ + kPeriod)
    return;
  last_ = now;
  const auto lasted = std::chrono::duration_cast<std::chrono::seconds>(now - stage_began_).count();
  out_ << name_ << ": " << line << (is_new ? "" : fmt::format(" ({} s)", lasted)) << '\n'
       << std::flush;
}

void ProgressLine::clear() {
  if (output_ == Output::Terminal && !shown_.empty())
    out_ << "\r\x1b[K" << std::flush;
  shown_.clear();
}

ProgressLine::Output progress_of_stderr() {
  return isatty(STDERR_FILENO) != 0 ? ProgressLine::Output::Terminal : ProgressLine::Output::File;
}

}  // namespace temper
