// `temper launch slurm|k8s CONFIG`: writes the job script or manifest that runs a pipeline on a
// cluster, and submits it only with --submit.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// Declares the flags of `temper launch`; the handler returns the exit code.
Handler launch_command(Flags& flags);

}  // namespace temper::cli
