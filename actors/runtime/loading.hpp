// Detects progress while a worker loads its role, to tell a slow start from one that hangs.
#pragma once

#include "core/units.hpp"

#include <cstdint>

namespace temper::actors {

/// Counts as progress. For work that waits, under its own deadline, for something outside this
/// process (an inference server). Thread-safe.
void note_progress();

/// Detects whether the process makes progress between two calls from one thread. The work of that
/// thread itself does not count.
class ProgressMeter {
 public:
  ProgressMeter() { has_progressed(); }
  /// True if, since the last call, the process used processor time, read from a disk, or called
  /// note_progress().
  bool has_progressed();

 private:
  Duration processor_{};
  std::int64_t reads_ = 0;
  std::uint64_t notes_ = 0;
};

}  // namespace temper::actors
