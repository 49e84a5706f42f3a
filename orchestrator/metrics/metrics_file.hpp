// metrics.jsonl: one line per step. Rates and shares cover the interval since the previous line. A
// line is written when the next step completes, or kSettle later, when all spans of the interval
// were reported. After a rollback steps appear again, with a higher `resumes`.
#pragma once

#include "core/files.hpp"
#include "orchestrator/metrics/metrics_line.hpp"
#include "orchestrator/metrics/run_metrics.hpp"

#include <functional>

namespace temper::orchestrator {

/// The line of a step, without states and evaluation.
MetricsLine line_of(const Update& update, const RunMetrics& metrics);

class MetricsFile {
 public:
  static constexpr Duration kSettle = std::chrono::seconds(2);

  /// Creates an empty file: a resumed run feeds its whole log again. Errors: see
  /// AppendFile::open().
  static Result<MetricsFile> create(const std::filesystem::path& path);

  /// Call for every record, after `metrics` has received it. Error: Io if a line cannot be written.
  Status feed(const Record& record, const RunMetrics& metrics);
  /// Writes the pending lines and syncs the file. Error: Io.
  Status close(const RunMetrics& metrics);
  /// As put_in_place() in core/replace.hpp, errors included. After an error the file is closed.
  Status put_in_place(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Receives every line that is written.
  void set_on_line(std::function<void(const MetricsLine&)> on_line) {
    on_line_ = std::move(on_line);
  }

 private:
  explicit MetricsFile(AppendFile file) : file_(std::move(file)) {}
  Status write(const Update& update, const RunMetrics& metrics);
  std::optional<EvaluationFigures> new_evaluation(PolicyVersion step, const RunMetrics& metrics);

  AppendFile file_;
  std::function<void(const MetricsLine&)> on_line_;
  std::uint64_t written_ = 0;    ///< Steps written.
  std::size_t evaluations_ = 0;  ///< Evaluations written.
};

}  // namespace temper::orchestrator
