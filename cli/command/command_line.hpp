// A program as a list of commands. There are two programs: `temper` has the commands that a run
// needs, `temper-study` those that predict and search, and links all of study/. Users call only
// `temper`, which starts the other one for its commands (cli/laboratory).
#pragma once

#include "cli/command/flags.hpp"

#include <functional>
#include <span>
#include <string_view>

namespace temper::cli {

/// Runs the command after its flags were parsed. Returns the exit code.
using Handler = std::function<int()>;

struct Command {
  const char* name;
  const char* help;
  Handler (*declare)(Flags& flags) = nullptr;  ///< Null: `elsewhere` runs the command.
  const char* alias = nullptr;                 ///< An earlier name.
  /// Runs the command line without parsing it, for example in another program. Returns the exit
  /// code.
  int (*elsewhere)(char** argv) = nullptr;
  bool listed = true;  ///< In --help, completion and the manual page.
};

/// Parses the command line, runs the command and returns the exit code. An exception of a library
/// is printed as an error message.
int run_command_line(int argc, char** argv, std::span<const Command> commands);

}  // namespace temper::cli
