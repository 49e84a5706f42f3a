#include "orchestrator/metrics/recorder.hpp"

#include "orchestrator/record/outputs.hpp"

#include <tuple>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

fs::path partial(const fs::path& file) {
  return file.string() + ".partial";
}

}  // namespace

Result<std::unique_ptr<RunRecorder>> RunRecorder::create(const fs::path& run_dir,
                                                         TraceForm trace,
                                                         std::vector<CardKind> kinds) {
  bool in_place = true;
  for (const std::string_view name :
       {kMetricsFile, kCertificateFile, trace_name(trace), kOutputsManifest}) {
    std::error_code ignored;
    in_place = in_place && !fs::exists(run_dir / name, ignored);
  }
  const auto path = [&](std::string_view name) {
    return in_place ? run_dir / name : partial(run_dir / name);
  };
  TEMPER_TRY(MetricsFile file, MetricsFile::create(path(kMetricsFile)));
  TEMPER_TRY(CertificateFile certificates, CertificateFile::create(path(kCertificateFile)));
  std::unique_ptr<RunRecorder> recorder(
      new RunRecorder(run_dir, trace, std::move(file), std::move(certificates)));
  recorder->in_place_ = in_place;
  TEMPER_TRY(recorder->trace_,
             TraceFile::create(
                 path(trace_name(trace)), trace, recorder->metrics_.timeline(), std::move(kinds)));
  return recorder;
}

void RunRecorder::keep_error(Status status) {
  if (!status && !error_)
    error_ = std::move(status).error();
}

void RunRecorder::feed(const Record& record) {
  // The first record after a resume, or of a repeated start.
  if (begun_ && !in_place_ &&
      (std::holds_alternative<event::Resumed>(record.event) ||
       std::holds_alternative<event::Started>(record.event)))
    keep_error(put_in_place());
  metrics_.feed(record);
  keep_error(metrics_file_.feed(record, metrics_));
  keep_error(certificates_.feed(record, metrics_));
  keep_error(trace_->feed(record, metrics_));
}

template <class Act>
Status RunRecorder::for_each_file(Act&& act) {
  TEMPER_TRY_STATUS(act(metrics_file_, run_dir_ / kMetricsFile));
  TEMPER_TRY_STATUS(act(certificates_, run_dir_ / kCertificateFile));
  return act(*trace_, run_dir_ / trace_name(trace_form_));
}

Status RunRecorder::put_in_place() {
  if (in_place_)
    return {};
  TEMPER_TRY_STATUS(for_each_file(
      [](auto& file, const fs::path& path) { return file.put_in_place(partial(path), path); }));
  in_place_ = true;
  return unseal_outputs(run_dir_);
}

Result<Summary> RunRecorder::close(const RunIdentity& identity) {
  const Summary summary = summarize(metrics_, identity);
  if (!in_place_) {
    std::ignore = for_each_file([](auto&, const fs::path& path) {
      std::error_code ignored;
      fs::remove(partial(path), ignored);
      return Status();
    });
    if (error_)
      return *error_;
    return summary;
  }
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
