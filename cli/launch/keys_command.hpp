// temper keys make|list|revoke RUN_DIR: what workers attach to a run with.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// Exit code 0: done. 1: it could not be; why is on stderr.
Handler keys_command(Flags& flags);

}  // namespace temper::cli
