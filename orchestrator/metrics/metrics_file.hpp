// metrics.jsonl: one line per update. Rates and shares are over the interval since the line before.
// A line is written when the next update is done, or kSettle later: by then the spans that belong
// to it have been reported. After a rollback steps appear again, with a higher `resumes`.
#pragma once

#include "core/files.hpp"
#include "orchestrator/metrics/metrics_line.hpp"

#include <functional>

namespace temper::orchestrator {

class MetricsFile {
 public:
  static constexpr Duration kSettle = std::chrono::seconds(2);

  /// Starts an empty file: a resumed run feeds its whole log again.
  static Result<MetricsFile> create(const std::filesystem::path& path);

  /// To be called for every record, after `metrics` was fed with it.
  Status feed(const Record& record, const RunMetrics& metrics);
  /// Writes the lines still held back.
  Status close(const RunMetrics& metrics);
  /// As put_in_place() of core/replace.hpp.
  Status put_in_place(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Is given every line that is written.
  void set_on_line(std::function<void(const MetricsLine&)> on_line) {
    on_line_ = std::move(on_line);
  }

 private:
  struct Mark {
    Time time{};
    TokenCounts tokens;
    GroupCounts groups;
  };
  explicit MetricsFile(AppendFile file) : file_(std::move(file)) {}
  Status write(const Update& update, const RunMetrics& metrics);
  std::optional<EvaluationFigures> new_evaluation(PolicyVersion step, const RunMetrics& metrics);

  AppendFile file_;
  std::function<void(const MetricsLine&)> on_line_;
  std::uint64_t written_ = 0;    ///< Updates.
  std::size_t evaluations_ = 0;  ///< Written.
  Mark last_;                    ///< Where the interval of the next line begins.
};

}  // namespace temper::orchestrator
