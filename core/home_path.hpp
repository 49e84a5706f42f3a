// Home directories in configured paths: `~/runs`, `${HOME}/data`. A shell expands them on a command
// line, but nothing does in a YAML file.
#pragma once

#include "core/result.hpp"

#include <string>
#include <string_view>

namespace temper {

/// Replaces a leading `~`, `$HOME` or `${HOME}` with `home`. Errors: InvalidInput for other shell
/// expansions (a variable, another user's home, the output of a command), and for a `home` that is
/// needed but not absolute.
Result<std::string> expand_home(std::string_view path, std::string_view home);

/// The environment variable HOME; empty if it is not set.
std::string home_folder();

}  // namespace temper
