// The metrics of a run as columns in bounded memory: at most kPoints points, each the mean, the
// smallest and the largest value of equally many updates (the last one: of fewer).
#pragma once

#include "core/files.hpp"
#include "orchestrator/watch/flat_metrics.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace temper::cli {

class Series {
 public:
  static constexpr std::size_t kPoints = 2048;

  /// A line of metrics.jsonl. Where its step is not after the one before, the run went back: what
  /// was after it is taken out.
  void add(const orchestrator::FlatMetrics& line);

  /// Updates in a point.
  std::uint64_t stride() const { return stride_; }
  std::size_t points() const { return points_.size(); }
  std::uint64_t updates() const;
  /// The line that was added last; empty: none.
  const orchestrator::FlatMetrics& last() const { return last_; }

  /// {"stride","points","from","step":[..],"time":[..],"series":{name:{"mean":[..],"min":..,"max":..}}}
  /// from this point on; min and max only where a point has several updates.
  std::string to_json(std::size_t from) const;

 private:
  /// Values are kept as floats and so are finite in JSON; their sum never is too large.
  struct Cell {
    double sum = 0;
    float min = 0, max = 0;
    std::uint32_t count = 0;
  };
  struct Point {
    std::uint64_t updates = 0;
    std::uint64_t first_step = 0;
    double step = 0, time = 0;  ///< Of its last update.
    std::vector<Cell> cells;    ///< By column; fewer if the last ones did not occur.
  };
  static void add(Cell& cell, const Cell& other);
  static void add(Point& point, const Point& other);
  std::size_t column(const std::string& name, std::size_t likely);
  void go_back(std::uint64_t step);
  void halve();

  std::uint64_t stride_ = 1;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<Point> points_;
  orchestrator::FlatMetrics last_;
};

/// Follows the metrics.jsonl of a run.
class MetricsFollower {
 public:
  explicit MetricsFollower(UntrustedFolder run) : run_(std::move(run)) {}
  /// Reads what was written since. A file that is shorter than it was is read from its beginning.
  void update();
  const Series& series() const { return series_; }

 private:
  const UntrustedFolder run_;
  std::int64_t read_ = 0;
  Series series_;
};

}  // namespace temper::cli
