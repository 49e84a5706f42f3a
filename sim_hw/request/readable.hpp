// Values with the unit a person would choose: 0.00174 s is "1.74 ms". Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace temper::sim_hw {

/// Of a metric's SI unit ("s", "B", "B/s", "FLOP/s"); other units stay as they are. Four digits.
std::string readable(double value, std::string_view unit);

/// "12.3 %", "-4.0 %".
std::string percent(double fraction);

}  // namespace temper::sim_hw
