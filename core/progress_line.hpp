// Progress display for long-running work. On a terminal: one line that is redrawn. Elsewhere (a
// pipe, a log file): one line per stage, and one every kPeriod while a stage lasts.
#pragma once

#include "core/clock.hpp"

#include <chrono>
#include <ostream>
#include <string>
#include <string_view>

namespace temper {

class ProgressLine {
 public:
  enum class Output { Terminal, File };
  static constexpr Duration kPeriod = std::chrono::seconds(10);

  /// `out` and `clock` must outlive the progress line. `name` starts each line that is not on a
  /// terminal, for example "temper measure".
  ProgressLine(std::ostream& out, Output output, const Clock& clock, std::string name);
  /// Calls clear().
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Shows the current stage and its progress. May be called at any rate.
  void show(std::string_view stage, std::string_view detail = {});
  /// Erases the line from a terminal.
  void clear();

 private:
  std::ostream& out_;
  const Output output_;
  const Clock& clock_;
  const std::string name_;
  std::string stage_, shown_;
  Time stage_began_{};
  Time last_{};
};

/// Terminal if stderr is one.
ProgressLine::Output progress_of_stderr();

}  // namespace temper
