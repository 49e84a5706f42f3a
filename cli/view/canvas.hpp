// Terminal text: lines of a fixed width with colors, bars in eighths of a character, sparklines,
// and short number formats.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::cli {

enum class Colours { Off, On };

/// Indices of the 256-color palette; nullopt: the terminal's default.
struct Paint {
  int foreground = -1;
  bool bold = false;
  bool operator==(const Paint&) const = default;
};

/// Builds lines that are cut at a width. Color codes count as zero columns.
class Canvas {
 public:
  Canvas(std::size_t width, Colours colours) : width_(width), colours_(colours) {}

  Canvas& text(std::string_view utf8, Paint paint = {});
  /// Pads the line with blanks up to this column.
  Canvas& to(std::size_t column);
  /// Ends the line.
  void line();
  std::size_t column() const { return column_; }
  std::size_t lines() const { return lines_; }
  std::size_t width() const { return width_; }
  std::size_t room() const { return column_ < width_ ? width_ - column_ : 0; }
  bool coloured() const { return colours_ == Colours::On; }

  struct Part {
    double share = 0;
    Paint paint;
  };
  /// A bar of `columns` characters with its parts from left to right, in eighths of a character.
  /// Without colors, only the first `solid` parts are drawn, as one.
  Canvas& bar(std::span<const Part> parts, std::size_t columns, std::size_t solid);
  /// A sparkline of at most `columns` characters, scaled from `low` to `high`. Each column shows
  /// the mean of its values.
  Canvas& sparkline(
      std::span<const double> values, std::size_t columns, double low, double high, Paint paint);

  std::string take();

 private:
  void raw(std::string_view escape);
  void cell(std::string_view glyph, int foreground, int background, bool bold);

  const std::size_t width_;
  const Colours colours_;
  std::string out_;
  std::size_t column_ = 0;
  std::size_t lines_ = 0;  ///< Completed lines.
};

/// Columns of a text on the terminal: the number of its code points.
std::size_t display_width(std::string_view utf8);

/// "12,345".
std::string grouped(std::int64_t value);
/// "0:09", "2:41", "1:02:03".
std::string clock_text(Duration d);
/// "87 %".
std::string percent(double share);

}  // namespace temper::cli
