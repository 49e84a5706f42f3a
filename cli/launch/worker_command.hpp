// temper worker: becomes a worker that attaches to a run, whichever program that is.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// Returns only if it cannot become one: exit code 1, after saying why.
Handler worker_command(Flags& flags);

}  // namespace temper::cli
