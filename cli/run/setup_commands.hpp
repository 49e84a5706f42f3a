// `temper doctor` checks this machine for everything that a run needs. `temper init` writes a
// commented configuration for the user's own task.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>

namespace temper::cli {

/// Returns the exit code: kFound if something that every run needs is missing.
int run_doctor(bool json, std::ostream& out);

struct InitOptions {
  std::string file;
  std::string task{};   ///< JSONL file; empty: a placeholder path.
  std::string model{};  ///< As model.path; empty: a small network with random weights.
};

/// Returns the exit code. Downloads or converts the model if necessary (find_model_folder()). A
/// known model without a task gets its shipped configuration. Never overwrites a file. The
/// configuration is valid once `task.path` exists.
int run_init(const InitOptions& options, std::ostream& out, std::ostream& err);

/// The text that `temper init` writes for a machine with this many cores.
std::string starter_config(const InitOptions& options, std::size_t cores);

Handler doctor_command(Flags& flags);
Handler init_command(Flags& flags);

}  // namespace temper::cli
