// The version of this program.
#pragma once

#include <string_view>

namespace temper {

/// "0.2.0", followed by the commit where it was built from a repository: "0.2.0 (4db58741)".
std::string_view program_version();

}  // namespace temper
