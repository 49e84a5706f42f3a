// How far long work has come, for a person: on a terminal one line that is written again and again,
// elsewhere (a pipe, a log) a line for each new stage and one now and then while it lasts.
#pragma once

#include "core/clock.hpp"

#include <chrono>
#include <ostream>
#include <string>
#include <string_view>

namespace temper {

class ProgressLine {
 public:
  enum class To { Terminal, File };
  static constexpr Duration kPeriod = std::chrono::seconds(10);

  /// Both outlive it. `name`: before each line elsewhere, "temper measure".
  ProgressLine(std::ostream& out, To to, const Clock& clock, std::string name);
  /// As clear().
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// What is being done, and how far: may be called as often as there is something to say.
  void show(std::string_view stage, std::string_view detail = {});
  /// Nothing is left of it on a terminal.
  void clear();

 private:
  std::ostream& out_;
  const To to_;
  const Clock& clock_;
  const std::string name_;
  std::string stage_, shown_;
  Time stage_began_{};
  Time last_{};
};

/// Whether stderr is a terminal.
ProgressLine::To progress_of_stderr();

}  // namespace temper
