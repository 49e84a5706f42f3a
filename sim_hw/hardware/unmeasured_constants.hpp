// Constants of a hardware that were not measured on it. A constant is measured if a FitRecord of
// its hardware names it and has rows of its own ("taken over from ..." has none). Counts of an
// engine's reads and writes (kCountedConstants) are excluded; of collectives only the operations
// count, not the small protocol. Pure functions.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"

#include <string>
#include <vector>

namespace temper::sim_hw {

enum class ConstantOrigin {
  Default,    ///< No record; the value is the default.
  Given,      ///< The description sets a value, but no record names its source.
  TakenOver,  ///< A record names its source, which is not a measurement on this hardware.
};

struct UnmeasuredConstant {
  std::string name;  ///< "operators.matmul_boost", "collectives.all_gather"
  ConstantOrigin origin = ConstantOrigin::Default;
};

/// In declaration order.
std::vector<UnmeasuredConstant> unmeasured_constants(const HardwareSpec& hardware);

}  // namespace temper::sim_hw
