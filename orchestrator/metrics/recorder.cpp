#include "orchestrator/metrics/recorder.hpp"

#include "orchestrator/record/outputs.hpp"

namespace temper::orchestrator {

Result<std::unique_ptr<RunRecorder>> RunRecorder::create(const std::filesystem::path& run_dir,
                                                         TraceForm trace,
                                                         std::vector<CardKind> kinds) {
  TEMPER_TRY_STATUS(unseal_outputs(run_dir));
  TEMPER_TRY(MetricsFile file, MetricsFile::create(run_dir / kMetricsFile));
  TEMPER_TRY(CertificateFile certificates, CertificateFile::create(run_dir / kCertificateFile));
  std::unique_ptr<RunRecorder> recorder(
      new RunRecorder(run_dir, trace, std::move(file), std::move(certificates)));
  TEMPER_TRY(recorder->trace_,
             TraceFile::create(run_dir, trace, recorder->metrics_.timeline(), std::move(kinds)));
  return recorder;
}

void RunRecorder::keep_error(Status status) {
  if (!status && !error_)
    error_ = std::move(status).error();
}

void RunRecorder::feed(const Record& record) {
  metrics_.feed(record);
  keep_error(metrics_file_.feed(record, metrics_));
  keep_error(certificates_.feed(record, metrics_));
  keep_error(trace_->feed(record, metrics_));
}

Result<Summary> RunRecorder::close(const RunIdentity& identity) {
  const Summary summary = summarize(metrics_, identity);
  keep_error(metrics_file_.close(metrics_));
  keep_error(certificates_.close());
  keep_error(trace_->close(metrics_));
  keep_error(
      write_file_atomically(run_dir_ / kSummaryFile, to_json(summary, JsonStyle::Pretty) + "\n"));
  if (error_)
    return *error_;
  TEMPER_TRY_STATUS(seal_outputs(run_dir_,
                                 {std::string(kMetricsFile),
                                  std::string(kCertificateFile),
                                  std::string(trace_name(trace_form_)),
                                  std::string(kSummaryFile)},
                                 identity.log_hash));
  return summary;
}

}  // namespace temper::orchestrator
