// `temper protocol`: every message between orchestrator and workers, for programs in other
// languages; the package `temper` of python/ is made from its JSON.
#pragma once

#include "cli/command/command_line.hpp"

#include <string>

namespace temper::cli {

/// Messages, structs and enumerations as one JSON object, with a line break at the end.
std::string protocol_json();

Handler protocol_command(Flags& flags);

}  // namespace temper::cli
