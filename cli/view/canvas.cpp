#include "cli/view/canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace temper::cli {
namespace {

constexpr std::array<std::string_view, 9> kEighths{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
constexpr std::array<std::string_view, 8> kHeights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kEmpty = "░";
constexpr int kEmptyColour = 237;

std::size_t glyph_bytes(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

std::size_t rounded(double value) {
  return static_cast<std::size_t>(std::max(0.0, std::round(value)));
}

}  // namespace

std::size_t display_width(std::string_view utf8) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < utf8.size(); i += glyph_bytes(static_cast<unsigned char>(utf8[i])))
    ++n;
  return n;
}

void Canvas::raw(std::string_view escape) {
  if (coloured())
    out_ += escape;
}

void Canvas::cell(std::string_view glyph, int foreground, int background, bool bold) {
  if (column_ >= width_)
    return;
  if (coloured() && (foreground >= 0 || background >= 0 || bold)) {
    if (bold)
      out_ += "\x1b[1m";
    if (foreground >= 0)
      out_ += fmt::format("\x1b[38;5;{}m", foreground);
    if (background >= 0)
      out_ += fmt::format("\x1b[48;5;{}m", background);
    out_ += glyph;
    out_ += "\x1b[0m";
  } else {
    out_ += glyph;
  }
  ++column_;
}

Canvas& Canvas::text(std::string_view utf8, Paint paint) {
  std::size_t bytes = 0, columns = 0;
  while (bytes < utf8.size() && columns < room()) {
    bytes += glyph_bytes(static_cast<unsigned char>(utf8[bytes]));
    ++columns;
  }
  utf8 = utf8.substr(0, bytes);
  if (utf8.empty())
    return *this;
  if (paint.bold)
    raw("\x1b[1m");
  if (paint.foreground >= 0)
    raw(fmt::format("\x1b[38;5;{}m", paint.foreground));
  for (const char c : utf8)  // names and reasons are untrusted: no control characters
    out_ += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  if (!(paint == Paint{}))
    raw("\x1b[0m");
  column_ += columns;
  return *this;
}

Canvas& Canvas::to(std::size_t column) {
  const std::size_t end = std::min(column, width_);
  while (column_ < end) {
    out_ += ' ';
    ++column_;
  }
  return *this;
}

void Canvas::line() {
  while (!out_.empty() && out_.back() == ' ')
    out_.pop_back();
  out_ += '\n';
  column_ = 0;
  ++lines_;
}

Canvas& Canvas::bar(std::span<const Part> parts, std::size_t columns, std::size_t solid) {
  const std::size_t eighths = columns * 8;
  // The end of each part in eighths of a character; the rest is empty.
  std::vector<std::pair<std::size_t, int>> ends;
  double sum = 0;
  for (std::size_t i = 0; i < parts.size() && (coloured() || i < solid); ++i) {
    sum += std::max(0.0, parts[i].share);
    const std::size_t end = std::min(eighths, rounded(sum * static_cast<double>(eighths)));
    const int colour = parts[i].paint.foreground;
    if (ends.empty() || end > ends.back().first)
      ends.emplace_back(end, colour);
  }
  std::size_t part = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t begin = c * 8, end = begin + 8;
    while (part < ends.size() && ends[part].first <= begin)
      ++part;
    if (part == ends.size()) {
      cell(kEmpty, kEmptyColour, -1, false);
      continue;
    }
    const std::size_t filled = std::min(end, ends[part].first) - begin;
    if (coloured()) {
      // The next part is the background of this cell's remainder.
      const int behind = part + 1 < ends.size() ? ends[part + 1].second : kEmptyColour;
      cell(kEighths[filled], ends[part].second, filled < 8 ? behind : -1, false);
    } else {
      const bool more = part + 1 < ends.size();
      cell(more ? kEighths[8] : kEighths[filled], -1, -1, false);
    }
  }
  return *this;
}

Canvas& Canvas::sparkline(
    std::span<const double> values, std::size_t columns, double low, double high, Paint paint) {
  const std::size_t n = std::min(columns, values.size());
  std::string line;
  for (std::size_t c = 0; c < n; ++c) {
    const std::size_t begin = c * values.size() / n;
    const std::size_t end = std::max(begin + 1, (c + 1) * values.size() / n);
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += values[i];
    const double mean = sum / static_cast<double>(end - begin);
    const double scaled = high > low ? (mean - low) / (high - low) : 0.5;
    line += kHeights[std::min<std::size_t>(7, rounded(std::clamp(scaled, 0.0, 1.0) * 7))];
  }
  return text(line, paint);
}

std::string Canvas::take() {
  return std::move(out_);
}

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > sign + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string clock_text(Duration d) {
  const std::int64_t s = std::chrono::duration_cast<std::chrono::seconds>(d).count();
  if (s >= 3600)
    return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", share * 100);
}

}  // namespace temper::cli
