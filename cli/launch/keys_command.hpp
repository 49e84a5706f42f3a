// `temper keys make|list|revoke RUN_DIR`: the keys that workers attach to a run with.
#pragma once

#include "cli/command/command_line.hpp"

namespace temper::cli {

/// Declares the flags of `temper keys`; the handler returns the exit code.
Handler keys_command(Flags& flags);

}  // namespace temper::cli
