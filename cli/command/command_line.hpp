// A program as a list of its commands. `temper` is two programs: what a run needs (`temper`), and
// what asks before and after one (`temper-study`, which links all of study/). A command of the
// second is given to the first like any other, which hands it over.
#pragma once

#include "cli/command/flags.hpp"

#include <functional>
#include <span>
#include <string_view>

namespace temper::cli {

/// Does what was asked, once the flags are read. The value is the exit code.
using Handler = std::function<int()>;

struct Command {
  const char* name;
  const char* help;
  Handler (*declare)(Flags& flags) = nullptr;  ///< Null: a command of the other program.
  const char* alias = nullptr;                 ///< An earlier name.
};

/// The commands of `temper-study`, in the order of --help; without their handlers.
std::span<const Command> study_commands();

/// Parses and runs; the exit code. An exception of a library ends as a message.
int run_command_line(int argc, char** argv, std::span<const Command> commands);

/// Becomes `temper-study`, which lies beside this program, with the same words. Returns only if
/// that cannot be: the exit code, after saying why.
int become_study(char** argv);

}  // namespace temper::cli
