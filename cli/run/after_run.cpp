#include "cli/run/after_run.hpp"

#include "cli/command/exit_code.hpp"
#include "core/json.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/record/replay.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

namespace temper::cli {
namespace {

std::filesystem::path log_of(const AfterRunOptions& options) {
  return std::filesystem::path(options.run_dir) / "events.log";
}

struct ReplayReport {
  bool ok = false;
  std::uint64_t events = 0;
  std::uint64_t commands = 0;
  bool torn_tail = false;
  std::string log_hash;
  std::vector<std::string> written_by;
};

void describe(auto& v, ReplayReport& r) {
  v.field(1, "ok", r.ok);
  v.field(2, "events", r.events);
  v.field(3, "commands", r.commands);
  v.field(4, "torn_tail", r.torn_tail);
  v.field(5, "log_hash", r.log_hash);
  v.field(6, "written_by", r.written_by);
}

}  // namespace

int run_replay(const AfterRunOptions& options) {
  orchestrator::Replay replay;
  const auto summary = orchestrator::read_event_log(
      log_of(options), [&](const orchestrator::Record& r) { return replay.feed(r); });
  if (!summary)
    return fail(summary.error());
  if (replay.events() == 0)
    return fail({ErrorCode::NotFound,
                 log_of(options).string() + " holds no record; the run ended before it started"});
  const ReplayReport report{true,
                            replay.events(),
                            replay.commands(),
                            summary->torn_tail(),
                            fmt::format("{:016x}", summary->hash),
                            summary->written_by};
  if (options.json) {
    fmt::print("{}\n", to_json(report, JsonStyle::Pretty));
  } else {
    fmt::print("replayed {} events; all {} commands match{}\nlog hash {}\nwritten by temper {}\n",
               report.events,
               report.commands,
               report.torn_tail ? "; the last record is incomplete and was skipped" : "",
               report.log_hash,
               fmt::join(report.written_by, ", temper "));
  }
  return 0;
}

int run_audit(const AfterRunOptions& options) {
  const auto audited = orchestrator::audit_run(options.run_dir);
  if (!audited)
    return fail(audited.error());
  const orchestrator::AuditReport& report = *audited;
  if (options.json) {
    fmt::print("{}\n", to_json(report, JsonStyle::Pretty));
    return report.violations.empty() ? kDone : kFound;
  }
  fmt::print("records      {} ({} discarded by a resume)\n", report.records, report.voided);
  if (!report.log_end.empty())
    fmt::print("log          {}\n", report.log_end);
  fmt::print("steps        {}\n", report.steps);
  fmt::print(
      "groups       {} dispatched = {} trained + {} filtered + {} failed + {} evicted + {} "
      "outstanding\n",
      report.groups_dispatched,
      report.groups_trained,
      report.groups_filtered,
      report.groups_failed,
      report.groups_evicted,
      report.groups_outstanding);
  fmt::print("staleness    max {}, mean {:.3f}, bound {}\n",
             report.max_staleness,
             report.mean_staleness,
             report.bound ? std::to_string(*report.bound) : "none");
  if (report.clocks > 0) {
    fmt::print(
        "clocks       {} of attached workers, offset at most {:.3f} ms, corrected to within {:.3f} "
        "ms\n",
        report.clocks,
        1e3 * seconds(report.clock_apart),
        1e3 * seconds(report.clock_error));
  }
  if (report.attached > 0) {
    fmt::print("workers      {} attached; the current ones run on {} hosts\n",
               report.attached,
               report.hosts);
  }
  for (const std::string& violation : report.violations)
    fmt::print("VIOLATION    {}\n", violation);
  fmt::print("{}\n", report.violations.empty() ? "clean" : "NOT CLEAN");
  return report.violations.empty() ? kDone : kFound;
}

int run_events(const AfterRunOptions& options) {
  const auto summary =
      orchestrator::read_event_log(log_of(options), [](const orchestrator::Record& r) {
        fmt::print("{}\n", to_json(r));
        return Status();
      });
  if (!summary)
    return fail(summary.error());
  if (summary->torn_tail()) {
    fmt::print(stderr,
               "temper: warning: the last record of events.log is incomplete: {}\n",
               summary->end.what);
  }
  return 0;
}

namespace {

Handler after_run(Flags& flags, int (*run)(const AfterRunOptions& options)) {
  const auto options = std::make_shared<AfterRunOptions>();
  flags.argument("run", options->run_dir, "Run folder");
  flags.json(options->json);
  return [options, run] { return run(*options); };
}

}  // namespace

Handler audit_command(Flags& flags) {
  return after_run(flags, run_audit);
}
Handler replay_command(Flags& flags) {
  return after_run(flags, run_replay);
}
Handler events_command(Flags& flags) {
  return after_run(flags, run_events);
}

}  // namespace temper::cli
