// A line plot as SVG: panels below each other over the same x, axes from zero, a tick at every x
// that was measured (at round numbers where these are many), lines told apart by colour and by
// marker (and dashes from the ninth on), one legend above. A missing value leaves a gap. The same
// plot gives the same text.
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
    std::optional<double> top;  ///< Of the axis; none: a round number above all values.
  };

  std::string title;
  std::string x_label;
  std::vector<double> x;      ///< Ascending, at least one.
  std::vector<Panel> panels;  ///< All with the same lines, at least one.
};

std::string to_svg(const Plot& plot);

/// Round steps (1, 2 or 5 times a power of ten) from 0 up to and beyond `most`, at most `count`
/// steps. Requires: most > 0.
std::vector<double> round_ticks(double most, int count);

}  // namespace temper
