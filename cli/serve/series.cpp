#include "cli/serve/series.hpp"

#include "core/json.hpp"
#include "orchestrator/record/outputs.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

namespace temper::cli {
namespace {

/// The nearest finite float.
float finite_float(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

double number(const orchestrator::FlatMetrics& line, std::string_view name) {
  const auto it = std::ranges::find(line, name, [](const auto& m) { return m.first; });
  return it == line.end() ? 0 : it->second;
}

}  // namespace

void Series::add(Cell& cell, const Cell& other) {
  if (other.count == 0)
    return;
  cell.min = cell.count == 0 ? other.min : std::min(cell.min, other.min);
  cell.max = cell.count == 0 ? other.max : std::max(cell.max, other.max);
  cell.sum += other.sum;
  cell.count += other.count;
}

void Series::add(Point& point, const Point& other) {
  if (point.updates == 0)
    point.first_step = other.first_step;
  point.updates += other.updates;
  point.step = other.step;
  point.time = other.time;
  point.cells.resize(std::max(point.cells.size(), other.cells.size()));
  for (std::size_t i = 0; i < other.cells.size(); ++i)
    add(point.cells[i], other.cells[i]);
}

std::size_t Series::column(const std::string& name, std::size_t likely) {
  if (likely < names_.size() && names_[likely] == name)
    return likely;
  const auto [it, fresh] = columns_.try_emplace(name, names_.size());
  if (fresh)
    names_.push_back(name);
  return it->second;
}

std::uint64_t Series::updates() const {
  std::uint64_t sum = 0;
  for (const Point& point : points_)
    sum += point.updates;
  return sum;
}

void Series::add(const orchestrator::FlatMetrics& line) {
  Point next;
  next.updates = 1;
  next.step = number(line, "step");
  next.time = number(line, "time");
  next.first_step = static_cast<std::uint64_t>(std::clamp(next.step, 0.0, 1e18));
  std::size_t likely = 0;  // lines usually have the same column order
  for (const auto& [name, value] : line) {
    if (name == "step" || name == "time")
      continue;
    const std::size_t at = column(name, likely++);
    next.cells.resize(std::max(next.cells.size(), at + 1));
    const float v = finite_float(value);
    next.cells[at] = {v, v, v, 1};
  }
  go_back(next.first_step);
  last_ = line;
  if (!points_.empty() && points_.back().updates < stride_)
    return add(points_.back(), next);
  points_.push_back(std::move(next));
  if (points_.size() > kPoints)
    halve();
}

void Series::go_back(std::uint64_t step) {
  while (!points_.empty() && points_.back().first_step >= step)
    points_.pop_back();
}

void Series::halve() {
  std::vector<Point> halved;
  for (std::size_t i = 0; i < points_.size(); i += 2) {
    halved.push_back(std::move(points_[i]));
    if (i + 1 < points_.size())
      add(halved.back(), points_[i + 1]);
  }
  points_ = std::move(halved);
  stride_ *= 2;
}

std::string Series::to_json(std::size_t from) const {
  std::string out = fmt::format(R"({{"stride":{},"points":{},"from":{},"updates":{})",
                                stride_,
                                points_.size(),
                                from,
                                updates());
  const auto list = [&](std::string_view name, auto&& value) {
    out += fmt::format(R"(,"{}":[)", name);
    for (std::size_t i = from; i < points_.size(); ++i) {
      out += i == from ? "" : ",";
      if (const std::optional<double> known = value(points_[i]); known)
        fmt::format_to(std::back_inserter(out), "{:.6g}", *known);
      else
        out += "null";
    }
    out += ']';
  };
  list("step", [](const Point& p) { return std::optional(p.step); });
  list("time", [](const Point& p) { return std::optional(p.time); });
  out += R"(,"series":{)";
  for (std::size_t c = 0; c < names_.size(); ++c) {
    out += fmt::format(R"({}{}:{{"n":1)", c == 0 ? "" : ",", temper::to_json(names_[c]));
    const auto of = [c](auto pick) {
      return [c, pick](const Point& p) -> std::optional<double> {
        if (c >= p.cells.size() || p.cells[c].count == 0)
          return std::nullopt;
        return pick(p.cells[c]);
      };
    };
    list("mean", of([](const Cell& x) { return static_cast<float>(x.sum / x.count); }));
    if (stride_ > 1) {
      list("min", of([](const Cell& x) { return x.min; }));
      list("max", of([](const Cell& x) { return x.max; }));
    }
    out += '}';
  }
  return out + "}}";
}

void MetricsFollower::update() {
  auto file = FileReader::open(run_, orchestrator::kMetricsFile);
  struct stat status {};
  if (!file || ::fstat(file->descriptor(), &status) != 0 || status.st_size == read_)
    return;
  if (status.st_size < read_) {
    read_ = 0;
    series_ = {};
  }
  if (!file->seek(read_))
    return;
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  constexpr std::size_t kLongestLine = std::size_t{64} << 20;
  std::string text;
  for (auto got = file->read(text, kPiece); got && *got > 0; got = file->read(text, kPiece)) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto line =
          orchestrator::flatten_line(std::string_view(text).substr(begin, end - begin));
      if (line)
        series_.add(*line);
    }
    read_ += static_cast<std::int64_t>(begin);
    text.erase(0, begin);
    if (text.size() > kLongestLine)
      return;
  }
}

}  // namespace temper::cli
