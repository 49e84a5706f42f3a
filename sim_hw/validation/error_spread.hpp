// The errors of predictions of given kinds on a hardware: the possible error of a plan based on
// them. Computed from the shipped measurements each time, so that it reflects the constants in use.
// No threads.
#pragma once

#include "sim_hw/validation/statistics.hpp"

#include <span>
#include <string>
#include <string_view>

namespace temper::sim_hw {

struct ErrorSpread {
  std::string hardware;  ///< Hardware with the measurements.
  std::string kinds;     ///< "train_step time", comma-separated.
  std::int64_t rows = 0;
  double mean = 0;  ///< Mean absolute error.
  double max = 0;
  bool elsewhere = false;  ///< No row was measured on the requested hardware.
  /// Its default and unsourced constants replaced the measured ones of that hardware.
  bool substituted = false;

  /// "3.3 % at most (1.5 % mean) over 12 rows of train_step time on nvidia-h200"
  std::string text() const;
};

struct KindMetric {
  std::string_view kind;
  std::string_view metric;
};

/// Uses all rows of configs/validation of these kinds on `hardware`; if there are none, the rows
/// that its constants were fitted to; if there are none either, the hardware with the largest
/// errors, predicted with the default and unsourced constants of `hardware`. Errors: a file cannot
/// be read; no row is of these kinds.
Result<ErrorSpread> error_spread(Catalog& catalog,
                                 const HardwareSpec& hardware,
                                 std::span<const KindMetric> kinds);

}  // namespace temper::sim_hw
