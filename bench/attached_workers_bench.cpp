// Measures how far one orchestrator scales: runs whose workers attach over TCP with CURVE, all on
// this machine, with engines that answer at once. Prints for each number of rollout workers
//
//   join       seconds from the start of the run until its last worker is ready; the workers were
//              started before, and wait for its endpoint file
//   responses  per second of wall time; workers and orchestrator share the cores
//   head       processor time of the orchestrator per response and per 1000 tokens, relative to the
//              first row, and its peak memory
//
//   attached_workers_bench [WORKERS...]      default 2 48 384
#include "core/check.hpp"
#include "core/files.hpp"
#include "core/temporary_folder.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/run/processes/key_ring.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

extern char** environ;

namespace temper::bench {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;

constexpr int kTokens = 1024;

struct Measured {
  double join = 0;
  double seconds = 0;  ///< From the last worker's ready message to the last update.
  std::uint64_t responses = 0;
  double head_cpu = 0;
  long head_memory_kb = 0;
};

std::string config(int workers) {
  return fmt::format(R"(name: attached
policy: synthetic
steps: 40
algorithm: {{groups_per_update: {0}, responses_per_group: 8, kl: 0}}
rollout: {{replicas: {1}, concurrency: 64, launch: attach}}
trainer: {{launch: attach}}
reference: {{replicas: 0}}
reward: {{launch: attach}}
sampling: {{max_new_tokens: {2}}}
synthetic: {{tokens: {2}}}
staleness: {{bound: 4}}
checkpoint: {{every: 0}}
samples: {{share: 0}}
transport: {{kind: tcp, heartbeat: 1s, heartbeat_timeout: 60s}}
deadlines: {{attach: 10min, generate: 10min}}
)",
                     std::max(16, workers / 4),
                     workers,
                     kTokens);
}

pid_t start(std::vector<std::string> words, const fs::path& output) {
  std::vector<char*> raw;
  for (std::string& word : words)
    raw.push_back(word.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), kFlags, 0600);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, raw.front(), &files, nullptr, raw.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  TEMPER_CHECK(error == 0, "the program starts");
  return pid;
}

/// Reads the times of the log and the number of generated tokens.
void read_log(const fs::path& log, Measured& out) {
  Time ready{}, last{};
  const auto read = orchestrator::read_event_log(log, [&](const orchestrator::Record& r) {
    if (std::holds_alternative<event::ActorReady>(r.event))
      ready = r.time;
    if (const auto* generated = std::get_if<event::Generated>(&r.event))
      out.responses += generated->items.size();
    if (std::holds_alternative<event::Trained>(r.event))
      last = r.time;
    return Status();
  });
  TEMPER_CHECK(read.has_value(), "the log of a finished run is complete");
  out.join = seconds(ready.time_since_epoch());
  out.seconds = seconds(last - ready);
}

Measured measure(int workers) {
  const TemporaryFolder folder = TemporaryFolder::create("temperattached-").value();
  const fs::path run = folder.path() / "run";
  const fs::path file = folder.path() / "config.yaml";
  TEMPER_CHECK(write_file_atomically(file, config(workers)).has_value(), "the disk has room");
  auto ring = orchestrator::KeyRing::open(run, orchestrator::KeyRing::Make::Missing).value();
  const fs::path key = ring.make("worker", "any").value();
  // The orchestrator starts no workers itself: their processor time would count as its own.
  std::vector<std::string> slots{"trainer", "reward-0"};
  for (int i = 0; i < workers; ++i)
    slots.push_back(fmt::format("rollout-{}", i));
  std::vector<pid_t> children;
  for (const std::string& slot : slots) {
    children.push_back(start({TEMPER_WORKER,
                              "actor",
                              "--connect",
                              (run / "endpoint").string(),
                              "--key",
                              key.string(),
                              "--slot",
                              slot},
                             folder.path() / "workers.log"));
  }
  const pid_t head =
      start({TEMPER_PROGRAM, "run", file.string(), "--plain", "--set", "run_dir=" + run.string()},
            folder.path() / "head.log");
  int status = 0;
  rusage used{};
  ::wait4(head, &status, 0, &used);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fmt::print("{}", read_file(folder.path() / "head.log").value_or(""));
    for (const pid_t child : children)
      ::kill(child, SIGKILL);
  }
  for (const pid_t child : children)
    ::waitpid(child, nullptr, 0);
  TEMPER_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the run has finished");
  Measured out;
  read_log(run / "events.log", out);
  const auto cpu = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  out.head_cpu = cpu(used.ru_utime) + cpu(used.ru_stime);
  out.head_memory_kb = used.ru_maxrss;
  return out;
}

int run(const std::vector<int>& numbers) {
  fmt::print("{:>7} {:>9} {:>11} {:>14} {:>12} {:>8} {:>9}\n",
             "workers",
             "join",
             "responses/s",
             "head/response",
             "/1000 tokens",
             "ratio",
             "memory");
  double first = 0;
  for (const int workers : numbers) {
    const Measured m = measure(workers);
    const auto responses = static_cast<double>(m.responses);
    const double each = 1e6 * m.head_cpu / responses;
    if (first == 0)
      first = each;
    fmt::print("{:>7} {:>7.2f} s {:>11.0f} {:>11.1f} us {:>9.1f} us {:>8.2f} {:>6.1f} MB\n",
               workers,
               m.join,
               responses / m.seconds,
               each,
               1000 * each / kTokens,
               each / first,
               static_cast<double>(m.head_memory_kb) / 1024);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace temper::bench

int main(int argc, char** argv) {
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i)
    numbers.push_back(std::atoi(argv[i]));
  return temper::bench::run(numbers.empty() ? std::vector{2, 48, 384} : numbers);
}
