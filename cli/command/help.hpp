// The texts of --help: groups of commands, examples, exit codes, environment variables, and line
// breaks at the width of the terminal.
#pragma once

#include <string>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace temper::cli {

/// Adds these texts to the program, before its commands are added, or to one of its commands.
void set_help(CLI::App& app);

/// The meaning of each exit code, one per line.
std::string exit_codes_text();
/// The environment variables that Temper reads, one per line.
std::string variables_text();

/// Breaks lines of more than `width` columns at blanks and indents the rest below the description.
/// Example commands stay on one line, so that they can be copied. Width 0 breaks nothing.
std::string wrapped_help(std::string_view text, std::size_t width);

}  // namespace temper::cli
