// metrics.jsonl: one line per update. Rates and shares are over the interval since the line before.
// A line is written when the next update is done, or kSettle later: by then the spans that belong
// to it have been reported. After a rollback steps appear again, with a higher `resumes`.
#pragma once

#include "core/files.hpp"
#include "orchestrator/metrics/run_metrics.hpp"

namespace temper::orchestrator {

class MetricsFile {
 public:
  static constexpr Duration kSettle = std::chrono::seconds(2);

  /// Starts an empty file, replacing an old one: a resumed run feeds its whole log again.
  static Result<MetricsFile> create(const std::filesystem::path& path);

  /// To be called for every record, after `metrics` was fed with it.
  Status feed(const Record& record, const RunMetrics& metrics);
  /// Writes the lines still held back.
  Status close(const RunMetrics& metrics);

 private:
  struct Mark {
    Time time{};
    TokenCounts tokens;
  };
  explicit MetricsFile(AppendFile file) : file_(std::move(file)) {}
  Status write(const Update& update, const RunMetrics& metrics);

  AppendFile file_;
  std::uint64_t written_ = 0;  ///< Updates.
  Mark last_;                  ///< Where the interval of the next line begins.
};

}  // namespace temper::orchestrator
