// Commands on the folder of a finished (or dead) run. Each returns the exit code: 0 only if all is
// well.
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

/// `temper audit`: its flags, and what it does.
Handler audit_command(Flags& flags);
/// `temper replay`: its flags, and what it does.
Handler replay_command(Flags& flags);
/// `temper events`: its flags, and what it does.
Handler events_command(Flags& flags);

}  // namespace temper::cli
