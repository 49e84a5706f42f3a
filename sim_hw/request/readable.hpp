// Formats values with a human-readable unit: 0.00174 s is "1.74 ms". Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace temper::sim_hw {

/// `unit`: a metric's SI unit ("s", "B", "B/s", "FLOP/s"); other units are kept. Four digits.
std::string readable(double value, std::string_view unit);

}  // namespace temper::sim_hw
