// `temper watch RUN`: follows a run from another terminal.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// Declares the flags of `temper watch`.
Handler watch_command(Flags& flags);

}  // namespace temper::cli
