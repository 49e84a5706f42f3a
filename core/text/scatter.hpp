// Scatter plot as text for a terminal. Axes span the smallest to the largest value. If several
// points fall into one cell, the last one is shown. Deterministic.
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

/// Returns an empty string if there are no points.
std::string scatter_text(std::span<const ScatterPoint> points, const ScatterAxes& axes);

}  // namespace temper
