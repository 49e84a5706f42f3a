// Points in a plane as text for a terminal: axes from the smallest to the largest value, with a
// mark for each point. Of points in the same place the later one shows. The same points give the
// same text.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace temper {

struct ScatterPoint {
  double x = 0;
  double y = 0;
  char mark = '.';
};

struct ScatterAxes {
  std::string x;  ///< Label, with the unit.
  std::string y;
  std::size_t columns = 64;
  std::size_t rows = 14;
};

/// Empty for no points.
std::string scatter_text(std::span<const ScatterPoint> points, const ScatterAxes& axes);

}  // namespace temper
