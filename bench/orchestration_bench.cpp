// Measures the cost of orchestration in one run:
//   1. scheduler: responses per second through the pure state machine alone (dispatch, reference,
//      reward, training, release), with every command made and no I/O;
//   2. record: the same, with every record encoded, hashed and appended to events.log;
//   3. pipeline: responses per second of a whole run of processes over ZeroMQ with synthetic
//      engines that answer at once, payloads included (256 tokens and log-probs per response).
// Prints each rate with its median and spread over repetitions. Requirement: (3) >= 20,000.
#include "core/clock.hpp"
#include "core/files.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include "instant_actors.hpp"
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace temper::orchestrator {
namespace {

constexpr int kRepetitions = 5;

SchedulerConfig bench_config(std::uint64_t steps) {
  SchedulerConfig c;
  c.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 1024},
              {"reference-0", actors::RoleKind::Reference, {CardId(1)}, 0},
              {"reward-0", actors::RoleKind::Reward, {CardId(1)}, 0},
              {"trainer", actors::RoleKind::Trainer, {CardId(1)}, 0}};
  c.steps = steps;
  c.groups_per_update = 64;
  c.responses_per_group = 16;
  c.staleness_bound = 2;
  return c;
}

void print_row(const std::string& name, std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  fmt::print("{:<10} {:>12.0f} {:>12.0f} {:>12.0f}\n",
             name,
             rates[rates.size() / 2],
             rates.front(),
             rates.back());
  std::fflush(stdout);
}

double scheduler_rate(const std::filesystem::path* log_path) {
  const SchedulerConfig config = bench_config(100);
  Scheduler scheduler;
  std::optional<EventLog> log;
  if (log_path != nullptr) {
    std::filesystem::remove(*log_path);
    auto created = EventLog::create(*log_path);
    if (!created)
      std::abort();
    log.emplace(*std::move(created));
  }
  const RealClock clock;
  const auto groups = InstantActors(scheduler, [&](const Record& record) {
                        if (log && !log->append(record))
                          std::abort();
                      }).run(config);
  return static_cast<double>(groups) * config.responses_per_group / seconds(clock.now());
}

/// A whole run. Start and stop are excluded by running two lengths and dividing the difference in
/// responses by the difference in time.
double pipeline_rate(const std::filesystem::path& folder, const std::string& temper) {
  const auto run = [&](int steps) {
    const auto dir = folder / fmt::format("run-{}", steps);
    std::filesystem::remove_all(dir);
    const auto yaml = folder / "pipeline.yaml";
    const Status written = write_file_atomically(yaml,
                                                 "policy: synthetic\n"
                                                 "synthetic: {tokens: 256}\n"
                                                 "rollout: {concurrency: 1024}\n"
                                                 "algorithm: {groups_per_update: 64, "
                                                 "responses_per_group: 16, kl: 0.001}\n"
                                                 "staleness: {bound: 2}\n"
                                                 "checkpoint: {every: 0}\n");
    if (!written)
      std::abort();
    const std::string command =
        fmt::format("{} run {} --plain --set run_dir={} --set steps={} >/dev/null",
                    temper,
                    yaml.string(),
                    dir.string(),
                    steps);
    const RealClock clock;
    if (std::system(command.c_str()) !=
        0) {  // NOLINT: a benchmark of the program as users start it
      fmt::print(stderr, "failed: {}\n", command);
      std::exit(1);
    }
    return seconds(clock.now());
  };
  constexpr int kShort = 20, kLong = 320;
  const double short_time = run(kShort);
  const double long_time = run(kLong);
  return (kLong - kShort) * 64 * 16 / (long_time - short_time);
}

}  // namespace
}  // namespace temper::orchestrator

int main() {
  using namespace temper::orchestrator;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("bench-{}", getpid());
  std::filesystem::create_directories(folder);
  const auto log = folder / "events.log";
  fmt::print("responses/s      median          min          max\n");
  std::vector<double> bare, recorded, pipeline;
  for (int i = 0; i < kRepetitions; ++i)
    bare.push_back(scheduler_rate(nullptr));
  print_row("scheduler", bare);
  for (int i = 0; i < kRepetitions; ++i)
    recorded.push_back(scheduler_rate(&log));
  print_row("record", recorded);
  for (int i = 0; i < 3; ++i)
    pipeline.push_back(pipeline_rate(folder, TEMPER_PROGRAM));
  print_row("pipeline", pipeline);
  std::filesystem::remove_all(folder);
}
