// The metrics of a run as columns in bounded memory: at most kPoints points, each with mean,
// minimum and maximum over the same number of steps (the last point: fewer).
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

  /// Adds a line of metrics.jsonl. A step that is not after the previous one means that the run
  /// rolled back: later steps are removed.
  void add(const orchestrator::FlatMetrics& line);

  /// Steps per point.
  std::uint64_t stride() const { return stride_; }
  std::size_t points() const { return points_.size(); }
  std::uint64_t updates() const;
  /// The last added line; empty if there is none.
  const orchestrator::FlatMetrics& last() const { return last_; }

  /// {"stride","points","from","step":[..],"time":[..],"series":{name:{"mean":[..],"min":..,"max":..}}}
  /// starting at point `from`; min and max only if a point has several steps.
  std::string to_json(std::size_t from) const;

 private:
  /// Values are stored as finite floats, so that JSON can hold them and their sum does not
  /// overflow.
  struct Cell {
    double sum = 0;
    float min = 0, max = 0;
    std::uint32_t count = 0;
  };
  struct Point {
    std::uint64_t updates = 0;
    std::uint64_t first_step = 0;
    double step = 0, time = 0;  ///< Of the last step in the point.
    std::vector<Cell> cells;    ///< By column; trailing columns may be missing.
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
  /// Reads new lines. A file that has become shorter is read from its beginning.
  void update();
  const Series& series() const { return series_; }

 private:
  const UntrustedFolder run_;
  std::int64_t read_ = 0;
  Series series_;
};

}  // namespace temper::cli
