// `temper runs` lists the runs of a folder; `temper diff RUN RUN` compares two runs.
#pragma once

#include "cli/command/command_line.hpp"
#include "cli/serve/run_files.hpp"

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

/// One run in the list.
struct RunRow : RunFigures {
  std::string run;  ///< Path of its folder.
  std::string name;
  std::string state;  ///< running, finished, stopped, failed, lost, broken, not begun, empty, link
  std::int64_t disk_bytes = 0;
};
void describe(auto& v, RunRow& r) {
  v.field(1, "run", r.run);
  v.field(2, "name", r.name);
  v.field(3, "state", r.state);
  describe(v, static_cast<RunFigures&>(r));
  v.field(14, "disk_bytes", r.disk_bytes);
}

struct RunsOptions {
  std::string folder = "runs";
  std::string filter{};        ///< Part of the name, or a state.
  std::string sort = "began";  ///< One of kRunOrders.
  std::vector<std::string> remove{};
  bool json = false;
};
inline const std::vector<std::string> kRunOrders{"began", "name", "reward", "speed", "disk"};

/// Returns the exit code. Deletes only runs directly in the folder, and none that is running.
int run_runs(const RunsOptions& options, std::ostream& out, std::ostream& err);

/// Prints the keys that differ between two configurations, and the figures of both runs.
int run_diff(
    const std::string& a, const std::string& b, bool json, std::ostream& out, std::ostream& err);

Handler runs_command(Flags& flags);
Handler diff_command(Flags& flags);

}  // namespace temper::cli
