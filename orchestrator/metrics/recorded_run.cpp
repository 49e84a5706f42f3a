#include "core/text/numbers.hpp"
#include "core/yaml_tree.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/sections.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {
namespace {

RunIdentity identity_of(const std::filesystem::path& run_dir) {
  RunIdentity identity;
  const Result<std::string> text = read_file(UntrustedFolder(run_dir), "config.yaml");
  if (!text)
    return identity;
  const YamlDocument document("config.yaml", *text, {});
  for (const YamlNode::Entry& entry : document.root().entries) {
    const std::string& value = entry.node.text;
    if (entry.key == "name")
      identity.name = value;
    if (entry.key == "hardware")
      identity.simulated = value == name_of(HardwareKind::Simulated);
    if (entry.key == "seed")
      identity.seed = parse_number<std::uint64_t>(value).value_or(identity.seed);
  }
  return identity;
}

}  // namespace

Result<RecordedRun> read_run(const std::filesystem::path& run_dir) {
  const auto path = run_dir / "events.log";
  RunMetrics metrics;
  TEMPER_TRY(const LogSummary log,
             scan_event_log(path, [&](const Record& record, const LogPosition&) {
               metrics.feed(record);
               return Status();
             }));
  RunIdentity identity = identity_of(run_dir);
  identity.log_hash = log.hash;
  if (log.records == 0 && !log.damaged())
    return Error{ErrorCode::NotFound, path.string() + " holds no record"};
  RecordedRun run{
      summarize(metrics, identity), metrics.config(), {}, {}, metrics.finish().has_value()};
  if (log.damaged())
    run.damage = damage_error(path, log).context;
  if (log.torn_tail())
    run.torn = log.end.what;
  return run;
}

Status rebuild_outputs(const std::filesystem::path& run_dir) {
  RunIdentity identity = identity_of(run_dir);
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
