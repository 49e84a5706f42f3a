// certificates.jsonl: one line per step, which certifies the staleness of its batch. Example:
//
//   {"step":7,"bound":2,"age_max":1,"age_mean":0.5,"versions":{"oldest":6,"newest":7},"groups":[
//    {"group":28,"v0":6,"age":1,"oldest":6,"newest":7},{"group":29,"v0":7,"age":0,...}],
//    "check":"31c3fbd1f97d3d13"}
//
// step: version from which the step was taken. bound: largest age that the staleness rule allows;
// null: none. v0: version with which a group was dispatched. age: step - v0 or, if ages are
// token-weighted, step - the mean version of its tokens, rounded down. oldest, newest: versions
// that sampled tokens of the group (of the batch); null: no tokens.
// check: XXH3-64 of the line up to `,"check"`, seeded with the check of the previous line (of the
// first: 0), so that changed, missing and moved lines are detected.
//
// A line is written when its step completes. A resume removes the lines of steps that it makes
// void, so that every valid step has one line. `temper audit` verifies them against events.log.
#pragma once

#include "core/files.hpp"
#include "orchestrator/metrics/run_metrics.hpp"

namespace temper::orchestrator {

class CertificateFile {
 public:
  /// Creates an empty file: a resumed run feeds its whole log again. Errors: see
  /// AppendFile::open().
  static Result<CertificateFile> create(const std::filesystem::path& path);

  /// Call for every record, after `metrics` has received it. Errors: Io; those of
  /// AppendFile::open() after a resume. A line that was not written is not written later.
  Status feed(const Record& record, const RunMetrics& metrics);
  /// Syncs the file. Error: Io.
  Status close() { return file_.sync(); }
  /// As put_in_place() in core/replace.hpp, errors included. After an error the file is closed.
  Status put_in_place(const std::filesystem::path& from, const std::filesystem::path& to);

 private:
  CertificateFile(std::filesystem::path path, AppendFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  AppendFile file_;
  struct End {
    std::uint64_t updates = 0;
    std::int64_t bytes = 0;
    std::uint64_t check = 0;
  };
  End end_;                ///< Of the file.
  std::vector<End> ends_;  ///< Ends to which a resume may return: as many as RunMetrics keeps.
};

}  // namespace temper::orchestrator
