// temper launch slurm|k8s CONFIG: writes what a cluster is given to run a pipeline; it starts
// nothing unless it is asked to.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// Exit code 0: written (and taken, with --submit). 1: why not is on stderr.
Handler launch_command(Flags& flags);

}  // namespace temper::cli
