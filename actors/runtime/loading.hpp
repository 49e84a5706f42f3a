// Signs of progress of a worker whose role is being built: a start that takes long is told from one
// that hangs.
#pragma once

#include "core/units.hpp"

#include <cstdint>

namespace temper::actors {

/// From any thread, by work that waits for something outside this process (an inference server)
/// under a deadline of its own: that counts as progress.
void note_progress();

/// Whether this process gets on, between two looks of one thread. The work of that thread itself
/// does not count.
class ProgressMeter {
 public:
  ProgressMeter() { has_progressed(); }
  /// Since the last look it has used processor time, has read from a disk, or note_progress() was
  /// called.
  bool has_progressed();

 private:
  Duration processor_{};
  std::int64_t reads_ = 0;
  std::uint64_t notes_ = 0;
};

}  // namespace temper::actors
