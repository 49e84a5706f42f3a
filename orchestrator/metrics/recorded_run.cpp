#include "core/yaml.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/sections.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {
namespace {

/// What config.yaml of a run folder says about the whole run.
struct RunFacts {
  std::string name;
  std::uint64_t seed = 0;
  HardwareKind hardware = HardwareKind::Local;
  CostSection cost;
};
void describe(auto& v, RunFacts& f) {
  v.field(1, "name", f.name);
  v.field(2, "seed", f.seed);
  v.field(3, "hardware", f.hardware);
  v.field(4, "cost", f.cost);
}

struct RecordedIdentity {
  RunIdentity identity;
  std::string issue;  ///< Why the file cannot be read; empty: it can.
};

/// Of a file that cannot be read, and of keys that cannot: the defaults. All other keys are
/// ignored.
RecordedIdentity recorded_identity(const std::filesystem::path& run_dir) {
  const Result<std::string> text = read_file(UntrustedFolder(run_dir), "config.yaml");
  if (!text)
    return {{}, text.error().context};
  const auto read = read_yaml<RunFacts>((run_dir / "config.yaml").string(), *text);
  const RunFacts& facts = read.value;
  const auto issues = locate(read.document, read.document.issues());
  return {{facts.name, facts.seed, 0, facts.hardware == HardwareKind::Simulated, facts.cost},
          config_error(issues).context};
}

}  // namespace

RunIdentity identity_of(const PipelineConfig& config, std::uint64_t log_hash) {
  return {
      config.name, config.seed, log_hash, config.hardware == HardwareKind::Simulated, config.cost};
}

Result<RecordedRun> read_run(const std::filesystem::path& run_dir) {
  const auto path = run_dir / "events.log";
  RunMetrics metrics;
  TEMPER_TRY(const LogSummary log,
             scan_event_log(path, [&](const Record& record, const LogPosition&) {
               metrics.feed(record);
               return Status();
             }));
  auto [identity, config_issue] = recorded_identity(run_dir);
  identity.log_hash = log.hash;
  if (log.records == 0 && !log.damaged())
    return Error{ErrorCode::NotFound, path.string() + " holds no record"};
  RecordedRun run{
      summarize(metrics, identity), metrics.config(), {}, {}, metrics.finish().has_value()};
  run.config_issue = std::move(config_issue);
  if (log.damaged())
    run.damage = damage_error(path, log).context;
  if (log.torn_tail())
    run.torn = log.end.what;
  return run;
}

Status rebuild_outputs(const std::filesystem::path& run_dir) {
  RunIdentity identity = recorded_identity(run_dir).identity;
  const auto config = load_config(run_dir / "config.yaml");
  TEMPER_TRY(const auto recorder,
             RunRecorder::create(run_dir,
                                 identity.simulated ? TraceForm::Gzip : TraceForm::Json,
                                 config ? card_kinds(*config) : std::vector<CardKind>()));
  TEMPER_TRY(const LogSummary log,
             read_event_log(run_dir / "events.log", [&](const Record& record) {
               recorder->feed(record);
               return Status();
             }));
  identity.log_hash = log.hash;
  TEMPER_TRY_STATUS(recorder->put_in_place());
  if (auto closed = recorder->close(identity); !closed)
    return std::move(closed).error();
  return {};
}

}  // namespace temper::orchestrator
