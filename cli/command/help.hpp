// What --help says besides the flags: groups of commands, examples, exit codes and variables of the
// environment, in lines that a terminal has room for.
#pragma once

#include <string>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace temper::cli {

/// Of the program, before commands are added to it, or of one of its commands.
void set_help(CLI::App& app);

/// What the exit codes mean, a line for each.
std::string exit_codes_text();
/// Variables of the environment, a line for each.
std::string variables_text();

/// Lines of more than `width` columns are broken at blanks; what goes on stands below the
/// description. Examples are left as they are, for copying. 0: nothing is broken.
std::string wrapped_help(std::string_view text, std::size_t width);

}  // namespace temper::cli
