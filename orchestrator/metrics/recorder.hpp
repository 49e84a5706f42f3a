// The files that a run leaves for people: metrics.jsonl, certificates.jsonl and the trace while it
// goes on, summary.json at its end. Fed with the records of the run.
//
// A resumed run feeds those of its log first, and the files are written anew, as X.partial beside
// the ones that it had. Those stay as they are, and proved by outputs.manifest, until the log says
// that the run goes on: whenever the process ends, the files are those of the log as it is, or as
// it was one record earlier.
#pragma once

#include "orchestrator/metrics/certificate_file.hpp"
#include "orchestrator/metrics/metrics_file.hpp"
#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/metrics/trace_file.hpp"

namespace temper::orchestrator {

class RunRecorder {
 public:
  /// `kinds`: of cards, as the trace names them; none where all are alike.
  static Result<std::unique_ptr<RunRecorder>> create(const std::filesystem::path& run_dir,
                                                     TraceForm trace = TraceForm::Json,
                                                     std::vector<CardKind> kinds = {});

  /// To be called for every record, in order. A file that cannot be written is given up and
  /// reported by close(); it does not stop the run.
  void feed(const Record& record);
  /// All records of the log were fed: when the next one says that the run goes on, the files take
  /// the place of those that it had.
  void begin() { begun_ = true; }
  /// They do so now.
  Status put_in_place();
  /// Completes the files, writes summary.json, and proves them all by outputs.manifest; of a run
  /// that could not go on, leaves those that it had. Requires: the run is over.
  Result<Summary> close(const RunIdentity& identity);

  const RunMetrics& metrics() const { return metrics_; }
  /// Is given every line of metrics.jsonl as it is written. Of a run that is resumed these are all
  /// its lines, from the first one on.
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
  bool in_place_ = true;        ///< Else the files are X.partial.
  std::optional<Error> error_;  ///< The first one.
};

}  // namespace temper::orchestrator
