// `temper audit`, `replay` and `events`: commands on the folder of a run. Each returns the exit
// code, which is 0 only if no problem was found.
#pragma once

#include "cli/command/command_line.hpp"

#include <string>

namespace temper::cli {

struct AfterRunOptions {
  std::string run_dir;
  bool json = false;
};

int run_replay(const AfterRunOptions& options);
int run_audit(const AfterRunOptions& options);
int run_events(const AfterRunOptions& options);

/// Declares the flags of `temper audit`.
Handler audit_command(Flags& flags);
/// Declares the flags of `temper replay`.
Handler replay_command(Flags& flags);
/// Declares the flags of `temper events`.
Handler events_command(Flags& flags);

}  // namespace temper::cli
