// Measures `temper run --driver in-process` of a configuration on simulated hardware, on one core,
// as users start it, with its log, metrics and trace (in a temporary folder):
//   responses/s   responses trained per second of wall time
//   peak_MiB      the peak resident memory of the program
// Usage: simulated_run_bench CONFIG [STEPS [REPETITIONS]]; default: 100 steps, 3 repetitions.
// Prints each repetition and the median:
//   taskset -c 0 simulated_run_bench configs/cm384_pangu.yaml
#include "core/temporary_folder.hpp"
#include "orchestrator/pipeline/load.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Wall = std::chrono::steady_clock;

struct Measured {
  double wall = 0;
  double user = 0;
  double peak_mib = 0;
};

/// False: the run failed.
bool measure(const std::string& config, int steps, const fs::path& folder, Measured& out) {
  std::vector<std::string> words{TEMPER_PROGRAM,
                                 "run",
                                 config,
                                 "--set",
                                 fmt::format("steps={}", steps),
                                 "--set",
                                 "run_dir=" + (folder / "run").string(),
                                 "--driver",
                                 "in-process",
                                 "--json"};
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);  // Otherwise the child would write it again.
  const auto begin = Wall::now();
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr)
      ::_exit(126);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || ::wait4(child, &status, 0, &used) != child)
    return false;
  out.wall = std::chrono::duration<double>(Wall::now() - begin).count();
  out.user =
      static_cast<double>(used.ru_utime.tv_sec) + static_cast<double>(used.ru_utime.tv_usec) / 1e6;
  out.peak_mib = static_cast<double>(used.ru_maxrss) / 1024;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: simulated_run_bench CONFIG [STEPS [REPETITIONS]]\n");
    return 2;
  }
  const std::string config = argv[1];
  const int steps = argc > 2 ? std::atoi(argv[2]) : 100;
  const int repetitions = argc > 3 ? std::max(1, std::atoi(argv[3])) : 3;
  const auto loaded = temper::orchestrator::load_config(config);
  if (!loaded) {
    fmt::print(stderr, "{}\n", loaded.error().context);
    return 1;
  }
  const double responses = static_cast<double>(steps) * loaded->algorithm.groups_per_update *
                           loaded->algorithm.responses_per_group;
  std::vector<double> walls;
  for (int i = 0; i < repetitions; ++i) {
    const auto folder = temper::TemporaryFolder::create("temper-bench-");
    if (!folder)
      return 1;
    Measured m;
    const bool ok = measure(config, steps, folder->path(), m);
    if (!ok) {
      fmt::print(stderr, "simulated_run_bench: the run failed\n");
      return 1;
    }
    fmt::print("{} steps: {:.2f} s wall, {:.2f} s user, {:.0f} responses/s, peak {:.0f} MiB\n",
               steps,
               m.wall,
               m.user,
               responses / m.wall,
               m.peak_mib);
    walls.push_back(m.wall);
  }
  std::sort(walls.begin(), walls.end());
  fmt::print("median {:.2f} s\n", walls[walls.size() / 2]);
  return 0;
}
