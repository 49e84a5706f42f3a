#include "cli/command/command_line.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/command/help.hpp"
#include "cli/command/shell.hpp"
#include "core/exception_error.hpp"
#include "core/nearest_name.hpp"
#include "core/version.hpp"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace temper::cli {
namespace {

/// Commands that other ones replaced, and how to call these.
constexpr std::pair<std::string_view, std::string_view> kReplaced[] = {
    {"compare",
     "`temper sweep` now; --policies A,B is --over staleness.rule=A,B; --eta 1,2 is --over "
     "staleness.bound=1,2; --vary is --over"},
};

/// Opens /dev/null on closed standard descriptors. Otherwise the next file that is opened would
/// take the number of stdout and receive the text for the terminal.
void open_standard_descriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO)
    ::close(fd);
}

bool is_named(const Command& command, std::string_view word) {
  return word == command.name || (command.alias != nullptr && word == command.alias);
}

int refuse(const std::string& what) {
  std::fputs(("temper: " + what + "\n").c_str(), stderr);
  return kBadInput;
}

/// "; did you mean `run`?"; empty if no known name is similar.
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const auto near = nearest_name(word, known);
  return near ? fmt::format("; did you mean `{}`?", *near) : std::string();
}

/// The first word after the command that looks like a flag but is not one of its flags.
std::optional<std::string> unknown_flag(const CLI::App& command, int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string word(argv[i]);
    if (word == "--")
      break;
    const std::string flag = word.substr(0, word.find('='));
    if (flag.starts_with("--") && command.get_option_no_throw(flag) == nullptr)
      return flag;
  }
  return std::nullopt;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames())
      flags.push_back("--" + name);
  }
  return flags;
}

/// Prints what is wrong with the command line and which command lists the valid words.
int explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-')
    return refuse(fmt::format("{}; `temper --help` lists the commands", error.what()));
  for (const auto& [name, by] : kReplaced) {
    if (name == argv[1])
      return refuse(fmt::format("`temper {}` is {}", name, by));
  }
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto found = std::ranges::find_if(
      commands, [&](const CLI::App* known) { return known->check_name(argv[1]); });
  if (found == commands.end()) {
    std::vector<std::string> known;
    known.reserve(commands.size());
    for (const CLI::App* one : commands)
      known.push_back(one->get_name());
    return refuse(fmt::format("no command `{}`{}; `temper --help` lists all commands",
                              argv[1],
                              suggestion(argv[1], known)));
  }
  const CLI::App* command = *found;
  if (const auto flag = unknown_flag(*command, argc, argv)) {
    return refuse(fmt::format("`temper {}` has no flag {}{}; `temper {} --help` lists its flags",
                              command->get_name(),
                              *flag,
                              suggestion(*flag, flags_of(*command)),
                              command->get_name()));
  }
  return refuse(fmt::format("{}; see `temper {} --help`", error.what(), command->get_name()));
}

/// The exit code if the program ends here: after --help or --version, or on a parse error.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);  // it prints --help and --version
    return explain(app, error, argc, argv);
  }
  return std::nullopt;
}

int parse_and_run(int argc, char** argv, std::span<const Command> commands) {
  CLI::App app("Reinforcement learning (RL) post-training from one YAML file.", "temper");
  set_help(app);
  app.require_subcommand(1);
  app.fallthrough(false);
  app.set_version_flag("--version", fmt::format("temper {}", program_version()));
  std::vector<std::pair<CLI::App*, Handler>> handlers;
  for (const Command& command : commands) {
    if (command.elsewhere != nullptr && argc > 1 && is_named(command, argv[1]))
      return command.elsewhere(argv);
    if (!command.listed)
      continue;
    auto* added = app.add_subcommand(command.name, command.help);
    if (command.alias != nullptr)
      added->alias(command.alias);
    set_help(*added);
    if (command.declare == nullptr)
      continue;
    Flags flags(*added);
    handlers.emplace_back(added, command.declare(flags));
  }
  add_completion(app);
  add_man_page(app);
  if (const auto ended = parse(app, argc, argv))
    return *ended;
  for (const auto& [command, handler] : handlers) {
    if (command->parsed())
      return handler();
  }
  return 0;  // completion: the parser printed it
}

}  // namespace

int run_command_line(int argc, char** argv, std::span<const Command> commands) {
  open_standard_descriptors();
  report_uncaught_exceptions();
  try {
    return parse_and_run(argc, argv, commands);
  } catch (const std::exception& exception) {
    return fail(error_of(exception));
  }
}

}  // namespace temper::cli
