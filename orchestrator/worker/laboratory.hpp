// The subcommands of temper-worker that the laboratory adds. A build without it (-DTEMPER_LAB=OFF)
// links no_laboratory.cpp instead of laboratory.cpp.
#pragma once

#include <functional>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace temper::orchestrator {

struct WorkerCommand {
  CLI::App* declared = nullptr;  ///< Owned by the program.
  std::function<int()> run;      ///< Returns the exit code.
};

/// Adds the subcommands to the program.
std::vector<WorkerCommand> declare_laboratory(CLI::App& app);

}  // namespace temper::orchestrator
