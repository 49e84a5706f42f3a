// `temper watch RUN`: the view of a run, from another terminal.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// `temper watch`: its flags, and what it does.
Handler watch_command(Flags& flags);

}  // namespace temper::cli
