// `temper worker`: replaces itself by the program of a worker, which attaches to a run.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// Declares the flags of `temper worker`. The handler returns only on failure, with the exit code.
Handler worker_command(Flags& flags);

}  // namespace temper::cli
