// `temper protocol`: the schema of every message between orchestrator and workers, for programs in
// other languages. The Python package is generated from its JSON.
#pragma once

#include "cli/command/command_line.hpp"

#include <string>

namespace temper::cli {

/// Messages, structs and enumerations as one JSON object and a line break.
std::string protocol_json();

Handler protocol_command(Flags& flags);

}  // namespace temper::cli
