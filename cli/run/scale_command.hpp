// `temper scale`: changes the number of actors of a running job.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// Declares the flags of `temper scale`.
Handler scale_command(Flags& flags);

}  // namespace temper::cli
