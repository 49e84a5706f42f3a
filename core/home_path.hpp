// Paths as people write them in a configuration: `~/runs`, `${HOME}/data`. A shell would have
// replaced them on a command line; in a YAML file nobody has.
#pragma once

#include "core/result.hpp"

#include <string>
#include <string_view>

namespace temper {

/// `~`, `$HOME` or `${HOME}` as the first part of a path, replaced by `home`. Errors: what a shell
/// would replace too, and this does not (another variable, the home of somebody else, the output
/// of a command); a home that is not absolute where one is needed.
Result<std::string> expand_home(std::string_view path, std::string_view home);

/// HOME of the environment; empty: there is none.
std::string home_folder();

}  // namespace temper
