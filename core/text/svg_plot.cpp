#include "core/text/svg_plot.hpp"

#include "core/text/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace temper {
namespace {

constexpr double kWidth = 760, kLeft = 76, kRight = 24;
constexpr double kPanel = 210, kGap = 38, kBelow = 52;
constexpr double kTitle = 34, kLegendLine = 20, kLegendMark = 28, kLetter = 7;
constexpr int kTicks = 5;
constexpr std::size_t kMostXTicks = 14;
constexpr std::size_t kMostMarkers = 14;  ///< Per line; with more points only every n-th has a
                                          ///< marker.

/// The palette of Okabe and Ito, which color-blind readers can distinguish.
constexpr std::array<std::string_view, 8> kColors{
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"};

/// Swaps foreground, background and grid colors in dark mode.
constexpr std::string_view kDark =
    "<style>@media (prefers-color-scheme: dark) {svg {fill: #ddd} [fill=\"#fff\"] {fill: #0d1117} "
    "[stroke=\"#222\"] {stroke: #ddd} [stroke=\"#ddd\"] {stroke: #3d444d} "
    "[stroke=\"#000000\"] {stroke: #fff} [fill=\"#000000\"] {fill: #fff}}</style>\n";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

/// 12k for 12000; at most three significant digits.
std::string tick_text(double value) {
  return std::abs(value) >= 10000 ? significant_thousands(value) : fmt::format("{:.4g}", value);
}

std::string marker(std::size_t line, double x, double y) {
  const std::string_view color = kColors[line % kColors.size()];
  switch (line % 4) {
    case 0:
      return fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.6\" fill=\"{}\"/>\n", x, y, color);
    case 1:
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"6.6\" height=\"6.6\" fill=\"{}\"/>\n",
          x - 3.3,
          y - 3.3,
          color);
    case 2:
      return fmt::format(
          "<path d=\"M{:.1f} {:.1f}l4.4 7.6h-8.8z\" fill=\"{}\"/>\n", x, y - 4.6, color);
    default:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l4.6 4.6l-4.6 4.6l-4.6 -4.6z\" fill=\"{}\"/>\n",
                         x,
                         y - 4.6,
                         color);
  }
}

/// Dashed once the colors repeat, or if the line would hide another one.
enum class Dashed { No, Yes };
std::string stroke(std::size_t line, Dashed dashed = Dashed::No) {
  return fmt::format("stroke=\"{}\" stroke-width=\"2\" fill=\"none\"{}",
                     kColors[line % kColors.size()],
                     dashed == Dashed::Yes            ? " stroke-dasharray=\"7 7\""
                     : line / kColors.size() % 2 == 1 ? " stroke-dasharray=\"5 3\""
                                                      : "");
}

std::string text(double x, double y, std::string_view anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                     x,
                     y,
                     anchor,
                     escaped(words));
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    std::size_t longest = 0;
    for (const Plot::Line& line : plot.panels.front().lines)
      longest = std::max(longest, line.name.size());
    legend_cell_ = kLegendMark + kLetter * static_cast<double>(longest) + 20;
    columns_ = std::max<std::size_t>(
        1, static_cast<std::size_t>((kWidth - kLeft - kRight) / legend_cell_));
    const std::size_t lines = plot.panels.front().lines.size();
    const std::size_t rows = (lines + columns_ - 1) / columns_;
    top_ = kTitle + kLegendLine * static_cast<double>(rows) + 14;
    // A single x is centered.
    least_ = plot.x.size() > 1 ? plot.x.front() : plot.x.front() - 1;
    most_ = plot.x.size() > 1 ? plot.x.back() : plot.x.front() + 1;
  }

  std::string svg() {
    const double panels = static_cast<double>(plot_.panels.size());
    const double height = top_ + panels * kPanel + (panels - 1) * kGap + kBelow;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" "
        "fill=\"#222\" role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n{4}"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        kWidth,
        height,
        escaped(plot_.title),
        escaped(description()),
        kDark);
    out_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
                    kLeft,
                    escaped(plot_.title));
    legend();
    for (std::size_t i = 0; i < plot_.panels.size(); ++i)
      panel(plot_.panels[i], top_ + static_cast<double>(i) * (kPanel + kGap));
    out_ += text((kLeft + kWidth - kRight) / 2, height - 12, "middle", plot_.x_label);
    return std::move(out_) + "</svg>\n";
  }

 private:
  double x_of(double x) const {
    constexpr double kInset = 14;
    return kLeft + kInset +
           (x - least_) / (most_ - least_) * (kWidth - kLeft - kRight - 2 * kInset);
  }

  /// Text alternative: the axes and the names of the lines.
  std::string description() const {
    std::string out;
    for (const Plot::Panel& p : plot_.panels)
      out += fmt::format("{}{}", out.empty() ? "" : "; ", p.label);
    out += fmt::format(" over {}: ", plot_.x_label);
    for (const Plot::Line& line : plot_.panels.front().lines)
      out += fmt::format("{}{}", out.ends_with(": ") ? "" : ", ", line.name);
    return out;
  }

  void legend() {
    const auto& lines = plot_.panels.front().lines;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const double x = kLeft + legend_cell_ * static_cast<double>(i % columns_);
      const std::size_t line = i / columns_;
      const double y = kTitle + 8 + kLegendLine * static_cast<double>(line);
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}h22\" {}/>\n", x, y, stroke(i));
      out_ += marker(i, x + 11, y) + text(x + kLegendMark, y + 4, "start", lines[i].name);
    }
  }

  std::vector<double> x_ticks() const {
    if (plot_.x.size() <= kMostXTicks)
      return plot_.x;
    std::vector<double> out = round_ticks(most_, static_cast<int>(kMostXTicks));
    std::erase_if(out, [&](double x) { return x < least_ || x > most_; });
    return out;
  }

  void panel(const Plot::Panel& p, double top) {
    double most = p.top.value_or(0);
    for (const Plot::Line& line : p.lines) {
      for (const auto& value : line.values)
        most = std::max(most, value.value_or(0));
    }
    const std::vector<double> ticks = round_ticks(most > 0 ? most : 1, kTicks);
    const double highest = p.top.value_or(ticks.back());
    const double bottom = top + kPanel;
    const auto y_of = [&](double y) { return bottom - y / highest * kPanel; };
    for (const double tick : ticks) {
      if (tick > highest)
        continue;
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#ddd\" fill=\"none\"/>\n",
                          kLeft,
                          y_of(tick),
                          kWidth - kRight);
      out_ += text(kLeft - 8, y_of(tick) + 4, "end", tick_text(tick));
    }
    out_ += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}\" stroke=\"#222\" fill=\"none\"/>\n",
        kLeft,
        top,
        bottom,
        kWidth - kRight);
    for (const double x : x_ticks()) {
      out_ += fmt::format(
          "<path d=\"M{:.1f} {:.1f}v4\" stroke=\"#222\" fill=\"none\"/>\n", x_of(x), bottom);
      out_ += text(x_of(x), bottom + 17, "middle", tick_text(x));
    }
    out_ += fmt::format(
        "<text transform=\"translate(18 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        (top + bottom) / 2,
        escaped(p.label));
    for (std::size_t i = 0; i < p.lines.size(); ++i) {
      const auto hidden = [&](const Plot::Line& below) {
        return below.values == p.lines[i].values;
      };
      const auto below = std::span(p.lines).first(i);
      draw(p.lines[i], i, std::ranges::any_of(below, hidden) ? Dashed::Yes : Dashed::No, y_of);
    }
  }

  template <class YOf>
  void draw(const Plot::Line& line, std::size_t index, Dashed dashed, const YOf& y_of) {
    std::string path, markers;
    const std::size_t every = (plot_.x.size() + kMostMarkers - 1) / kMostMarkers;
    bool pen_down = false;
    for (std::size_t i = 0; i < plot_.x.size() && i < line.values.size(); ++i) {
      if (!line.values[i]) {
        pen_down = false;
        continue;
      }
      const double x = x_of(plot_.x[i]), y = y_of(*line.values[i]);
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x, y);
      if (i % every == 0)
        markers += marker(index, x, y);
      pen_down = true;
    }
    if (path.empty())
      return;
    out_ += fmt::format("<path d=\"{}\" {}/>\n{}", path, stroke(index, dashed), markers);
  }

  const Plot& plot_;
  std::size_t columns_ = 1;
  double legend_cell_ = 0, top_ = 0, least_ = 0, most_ = 1;
  std::string out_;
};

}  // namespace

std::vector<double> round_ticks(double most, int count) {
  double step = std::pow(10, std::floor(std::log10(most / count)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (most / (step * factor) <= count + 1e-9) {
      step *= factor;
      break;
    }
  }
  std::vector<double> out;
  const int last = static_cast<int>(std::ceil(most / step - 1e-9));
  for (int i = 0; i <= last; ++i)
    out.push_back(step * i);
  return out;
}

std::string to_svg(const Plot& plot) {
  return Drawing(plot).svg();
}

}  // namespace temper
