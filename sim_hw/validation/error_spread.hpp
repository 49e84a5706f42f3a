// How far predictions of some kinds are from what was measured on a hardware: what a plan made of
// them can be off by. From the measurements that ship with the build, compared anew each time, so
// that it speaks of the constants in use. No threads.
#pragma once

#include "sim_hw/validation/statistics.hpp"

#include <span>
#include <string>
#include <string_view>

namespace temper::sim_hw {

struct ErrorSpread {
  std::string hardware;  ///< Where it was measured.
  std::string kinds;     ///< "train_step time", with commas.
  std::int64_t rows = 0;
  double mean = 0;  ///< Of the errors' sizes.
  double max = 0;
  bool elsewhere = false;  ///< Nothing was measured on the hardware asked for.
  /// And what that one has by default or without a source was put in place of what they measured.
  bool put_in = false;

  /// "3.3 % at most (1.5 % mean) over 12 rows of train_step time on nvidia-h200"
  std::string text() const;
};

struct MeasuredAs {
  std::string_view kind;
  std::string_view metric;
};

/// Of every row of configs/validation of these kinds on `hardware`; where there is none, of the
/// rows that its own constants were fitted to; without such, of the hardware that is furthest off,
/// predicted with the constants of `hardware` that nothing stands behind. Error: a file cannot be
/// read, or no row is of these kinds.
Result<ErrorSpread> error_spread(Catalog& catalog,
                                 const HardwareSpec& hardware,
                                 std::span<const MeasuredAs> kinds);

}  // namespace temper::sim_hw
