// `temper runs`, `temper diff RUN RUN`: the runs of a folder, and two of them side by side.
#pragma once

#include "cli/command/command_line.hpp"
#include "cli/serve/run_files.hpp"

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

/// What a list says of a run.
struct RunRow : RunFigures {
  std::string run;  ///< Its folder.
  std::string name;
  std::string state;  ///< running, finished, stopped, failed, lost, broken, not begun, empty, link
  std::int64_t disk_bytes = 0;
};
template <class V>
void describe(V& v, RunRow& r) {
  v.field(1, "run", r.run);
  v.field(2, "name", r.name);
  v.field(3, "state", r.state);
  describe(v, static_cast<RunFigures&>(r));
  v.field(14, "disk_bytes", r.disk_bytes);
}

struct RunsOptions {
  std::string folder = "runs";
  std::string filter{};        ///< In the folder's name, the run's or its state.
  std::string sort = "began";  ///< Of kRunOrders.
  std::vector<std::string> remove{};
  bool json = false;
};
inline const std::vector<std::string> kRunOrders{"began", "name", "reward", "speed", "disk"};

/// The exit code. Removing: only runs of the folder, never one that goes on.
int run_runs(const RunsOptions& options, std::ostream& out, std::ostream& err);

/// What two configurations say differently, key by key, and the figures of both runs.
int run_diff(
    const std::string& a, const std::string& b, bool json, std::ostream& out, std::ostream& err);

Handler runs_command(Flags& flags);
Handler diff_command(Flags& flags);

}  // namespace temper::cli
