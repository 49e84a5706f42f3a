// Checks that the orchestrator's memory stays bounded: a scheduler, its log, and all files made
// from it (metrics, certificates, trace), with actors that answer at once. Prints the resident
// memory at every power of ten of updates, and its ratio to that after 10^4 updates, which should
// be at most 1.1; then the memory of an audit, a replay and a report of that log, each in its own
// process, and the log bytes per response.
//
//   head_memory_bench [UPDATES [GROUPS [RESPONSES]]]      100000 updates of 4 groups of 4 responses
#include "core/clock.hpp"
#include "core/files.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/record/replay.hpp"

#include "instant_actors.hpp"
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

struct Size {
  std::uint64_t steps = 100000;
  std::int32_t groups = 4, responses = 4;  ///< Groups per update, responses per group.
};

SchedulerConfig bench_config(const Size& size) {
  SchedulerConfig c;
  c.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 16},
              {"rollout-1", actors::RoleKind::Rollout, {CardId(1)}, 16},
              {"reference-0", actors::RoleKind::Reference, {CardId(2)}, 0},
              {"reward-0", actors::RoleKind::Reward, {CardId(3)}, 0},
              {"trainer", actors::RoleKind::Trainer, {CardId(4)}, 0}};
  c.steps = size.steps;
  c.groups_per_update = size.groups;
  c.responses_per_group = size.responses;
  c.staleness_bound = 2;
  c.checkpoint_every = 100;
  return c;
}

double resident_mb() {
  const std::string statm = read_file("/proc/self/statm").value_or("0 0");
  const auto pages = std::strtol(statm.c_str() + statm.find(' '), nullptr, 10);
  return static_cast<double>(pages * sysconf(_SC_PAGESIZE)) / 1e6;
}

void run(const fs::path& folder, const Size& size) {
  const SchedulerConfig config = bench_config(size);
  Scheduler scheduler;
  EventLog log = EventLog::create(folder / "events.log").value();
  const auto recorder = RunRecorder::create(folder, TraceForm::Gzip).value();
  std::uint64_t next = std::min<std::uint64_t>(size.steps, 1000);
  double at_ten_thousand = 0;
  const RealClock clock;
  InstantActors actors(
      scheduler,
      [&](const Record& record) {
        if (!log.append(record))
          std::abort();
        recorder->feed(record);
        const auto* trained = std::get_if<event::Trained>(&record.event);
        if (trained == nullptr || trained->version.value() != next)
          return;
        malloc_trim(0);
        const double now = resident_mb();
        if (next == 10000)
          at_ten_thousand = now;
        fmt::print("{:>10} {:>10.1f} {:>8} {:>12.0f}\n",
                   next,
                   now,
                   at_ten_thousand > 0 ? fmt::format("{:.3f}", now / at_ten_thousand) : "",
                   static_cast<double>(next) / seconds(clock.now()));
        std::fflush(stdout);
        next *= 10;
      },
      std::chrono::milliseconds(1));
  actors.report_spans();
  actors.run(config);
  if (!recorder->close({"bench", 1, log.hash(), true}))
    std::abort();
}

bool audit(const fs::path& folder) {
  const auto report = audit_run(folder);
  for (const std::string& violation : report ? report->violations : std::vector<std::string>())
    fmt::print(stderr, "{}\n", violation);
  return report && report->violations.empty();
}

bool replay(const fs::path& folder) {
  Replay replay;
  return read_event_log(folder / "events.log", [&](const Record& r) { return replay.feed(r); })
      .has_value();
}

/// The memory of `temper report`.
bool figures(const fs::path& folder) {
  RunMetrics metrics;
  return read_event_log(folder / "events.log",
                        [&](const Record& r) {
                          metrics.feed(r);
                          return Status();
                        })
      .has_value();
}

/// Peak memory of a process that does nothing else.
void measure(const char* name, bool (*reads)(const fs::path&), const fs::path& folder) {
  const pid_t child = fork();
  if (child == 0)
    _exit(reads(folder) ? 0 : 1);
  int status = 0;
  struct rusage usage {};
  if (child < 0 || wait4(child, &status, 0, &usage) != child)
    std::abort();
  fmt::print("{}: {}, peak {:.1f} MB\n",
             name,
             status == 0 ? "clean" : "NOT CLEAN",
             static_cast<double>(usage.ru_maxrss) * 1024 / 1e6);
  std::fflush(stdout);
}

}  // namespace
}  // namespace temper::orchestrator

int main(int argc, char** argv) {
  using namespace temper::orchestrator;
  Size size;
  if (argc > 1)
    size.steps = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2)
    size.groups = std::atoi(argv[2]);
  if (argc > 3)
    size.responses = std::atoi(argv[3]);
  const fs::path folder = fs::temp_directory_path() / fmt::format("head-memory-{}", getpid());
  fs::create_directories(folder);
  fmt::print("   updates  memory MB    ratio    updates/s\n");
  std::fflush(stdout);
  const pid_t child = fork();  // A child process, so that the audit starts small.
  if (child == 0) {
    run(folder, size);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    std::abort();
  measure("audit", audit, folder);
  measure("replay", replay, folder);
  measure("report", figures, folder);
  std::uintmax_t bytes = 0;
  const std::size_t files = count_log_files(folder / "events.log").value();
  for (std::size_t n = 1; n <= files; ++n)
    bytes += fs::file_size(log_file(folder / "events.log", n));
  fmt::print("log: {} files, {:.1f} bytes per response\n",
             files,
             static_cast<double>(bytes) /
                 (static_cast<double>(size.steps) * size.groups * size.responses));
  fs::remove_all(folder);
}
