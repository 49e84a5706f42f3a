// `temper scale`: another number of actors for a run that goes on.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// `temper scale`: its flags, and what it does.
Handler scale_command(Flags& flags);

}  // namespace temper::cli
