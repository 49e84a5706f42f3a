// certificates.jsonl: one line per update, of what it was made of. An example:
//
//   {"step":7,"bound":2,"age_max":1,"age_mean":0.5,"versions":{"oldest":6,"newest":7},"groups":[
//    {"group":28,"v0":6,"age":1,"oldest":6,"newest":7},{"group":29,"v0":7,"age":0,...}],
//    "check":"31c3fbd1f97d3d13"}
//
// step: the version that was updated. bound: the largest age that the run's rule allows; null: it
// keeps none. v0: version a group was dispatched with; age: step - v0, or, where ages are
// token-weighted, step - the mean version of its tokens, rounded down. oldest, newest: versions
// that sampled tokens of the group (of the batch); null: there are none.
// check: XXH3-64 of the line up to `,"check"`, seeded with the check of the line before (of the
// first: 0), so that a line that was changed, is missing or was moved shows.
//
// A line is written when its update is done. A resume takes back the lines of what it makes void,
// so that every update that counts has one line. `temper audit` checks them against events.log.
#pragma once

#include "core/files.hpp"
#include "orchestrator/metrics/run_metrics.hpp"

namespace temper::orchestrator {

class CertificateFile {
 public:
  /// Starts an empty file: a resumed run feeds its whole log again.
  static Result<CertificateFile> create(const std::filesystem::path& path);

  /// To be called for every record, after `metrics` was fed with it.
  Status feed(const Record& record, const RunMetrics& metrics);
  Status close() { return file_.sync(); }
  /// As put_in_place() of core/replace.hpp.
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
  std::vector<End> ends_;  ///< Where a resume may go back to: as many as RunMetrics keeps.
};

}  // namespace temper::orchestrator
