// The output files of a run: metrics.jsonl, certificates.jsonl and the trace during the run,
// summary.json at its end. Input: the records of the run.
//
// A resumed run first feeds the records of its log. The files are then rewritten as X.partial
// beside the old ones, which stay valid, and certified by outputs.manifest, until the log records
// the resume. Whenever the process ends, the files match the log, or the log one record earlier.
#pragma once

#include "orchestrator/metrics/certificate_file.hpp"
#include "orchestrator/metrics/metrics_file.hpp"
#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/metrics/trace_file.hpp"

namespace temper::orchestrator {

class RunRecorder {
 public:
  /// Creates the files, or X.partial beside existing ones. `kinds`: kinds of cards, for the trace;
  /// empty if all cards are alike. Errors: see AppendFile::open() and GzipFile::create().
  static Result<std::unique_ptr<RunRecorder>> create(const std::filesystem::path& run_dir,
                                                     TraceForm trace = TraceForm::Json,
                                                     std::vector<CardKind> kinds = {});

  /// Call for every record, in order. A file that cannot be written is abandoned and reported by
  /// close(); the run continues.
  void feed(const Record& record);
  /// All records of the log were fed: at the next record, which records the resume, the new files
  /// replace the old ones.
  void begin() { begun_ = true; }
  /// Replaces the old files now, and removes outputs.manifest. Errors: see put_in_place() in
  /// core/replace.hpp; then some files may be replaced already.
  Status put_in_place();
  /// Completes the files, writes summary.json and certifies them by outputs.manifest. If the run
  /// could not be resumed, keeps the old files. Requires: the run is over. Error: the first file
  /// that could not be written.
  Result<Summary> close(const RunIdentity& identity);

  const RunMetrics& metrics() const { return metrics_; }
  /// Receives every line of metrics.jsonl as it is written; for a resumed run, all lines from the
  /// first.
  void set_on_line(std::function<void(const MetricsLine&)> on_line) {
    metrics_file_.set_on_line(std::move(on_line));
  }

 private:
  RunRecorder(std::filesystem::path run_dir,
              TraceForm trace,
              MetricsFile metrics,
              CertificateFile certificates)
      : run_dir_(std::move(run_dir)),
        trace_form_(trace),
        metrics_file_(std::move(metrics)),
        certificates_(std::move(certificates)) {}
  void keep_error(Status status);
  /// Calls `act` with each file and its name.
  template <class Act>
  Status for_each_file(Act&& act);

  const std::filesystem::path run_dir_;
  const TraceForm trace_form_;
  RunMetrics metrics_;
  MetricsFile metrics_file_;
  CertificateFile certificates_;
  std::unique_ptr<TraceFile> trace_;
  bool begun_ = false;
  bool in_place_ = true;        ///< If false, the files are X.partial.
  std::optional<Error> error_;  ///< The first error.
};

}  // namespace temper::orchestrator
