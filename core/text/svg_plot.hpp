// Line plot as SVG: stacked panels over a shared x axis, y axes from zero, and one legend at the
// top. Ticks are at every measured x, or at round numbers if there are many. Lines differ in color
// and marker, and in dashes from the ninth on. A missing value leaves a gap. Deterministic.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace temper {

struct Plot {
  struct Line {
    std::string name;
    std::vector<std::optional<double>> values;  ///< One per x.
  };
  struct Panel {
    std::string label;  ///< With the unit.
    std::vector<Line> lines;
    std::optional<double> top;  ///< End of the y axis; a round number above all values if empty.
  };

  std::string title;
  std::string x_label;
  std::vector<double> x;      ///< Ascending; at least one value.
  std::vector<Panel> panels;  ///< At least one panel; all have the same lines.
};

std::string to_svg(const Plot& plot);

/// Ticks at round steps (1, 2 or 5 times a power of ten) from 0 to `most` or just beyond, at most
/// `count` steps. Requires: most > 0.
std::vector<double> round_ticks(double most, int count);

}  // namespace temper
