#include "core/text/scatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace temper {
namespace {

struct Range {
  double low = 0;
  double high = 0;

  /// In [0, steps); the middle if the range is empty.
  std::size_t place(double value, std::size_t steps) const {
    if (high <= low)
      return steps / 2;
    const double share = (value - low) / (high - low);
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(steps - 1)));
  }
};

template <class Of>
Range range_of(std::span<const ScatterPoint> points, Of of) {
  const auto [low, high] = std::ranges::minmax(points, {}, of);
  return {of(low), of(high)};
}

}  // namespace

std::string scatter_text(std::span<const ScatterPoint> points, const ScatterAxes& axes) {
  if (points.empty())
    return {};
  const Range x = range_of(points, [](const ScatterPoint& p) { return p.x; });
  const Range y = range_of(points, [](const ScatterPoint& p) { return p.y; });
  std::vector<std::string> grid(axes.rows, std::string(axes.columns, ' '));
  for (const ScatterPoint& p : points)
    grid[axes.rows - 1 - y.place(p.y, axes.rows)][x.place(p.x, axes.columns)] = p.mark;
  std::string out = axes.y + "\n";
  for (std::size_t row = 0; row < axes.rows; ++row) {
    const std::string label = row == 0               ? fmt::format("{:.4g}", y.high)
                              : row + 1 == axes.rows ? fmt::format("{:.4g}", y.low)
                                                     : "";
    std::string& line = grid[row];
    line.erase(line.find_last_not_of(' ') + 1);
    out += fmt::format("{:>9} |{}\n", label, line);
  }
  out += fmt::format("{:>9} +{:-<{}}\n", "", "", axes.columns);
  const std::string low = fmt::format("{:.4g}", x.low);
  const std::string high = fmt::format("{:.4g}", x.high);
  out += fmt::format("{:>10} {}{:^{}}{}\n",
                     "",
                     low,
                     axes.x,
                     axes.columns - std::min(axes.columns, low.size() + high.size()),
                     high);
  return out;
}

}  // namespace temper
