#include "cli/command/shell.hpp"

#include "cli/command/help.hpp"
#include "core/version.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace temper::cli {
namespace {

// The scripts read the flags from `temper COMMAND --help`, so that they cannot go stale. @ stands
// for the list of commands.
constexpr std::string_view kBash = R"sh(_temper() {
  local word=${COMP_WORDS[COMP_CWORD]}
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "@" -- "$word")
  elif [[ $word == -* ]]; then
    local flags
    flags=$(temper "${COMP_WORDS[1]}" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _temper temper
)sh";
constexpr std::string_view kZsh = R"sh(#compdef temper
_temper() {
  if ((CURRENT == 2)); then
    compadd -- @
  elif [[ $words[CURRENT] == -* ]]; then
    compadd -- ${(f)"$(temper $words[2] --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)"}
  else
    _files
  fi
}
compdef _temper temper
)sh";
constexpr std::string_view kFish = R"sh(function __temper_flags
  set -l words (commandline -opc)
  temper $words[2] --help 2>/dev/null | string match -ra -- '--[a-z][a-z-]*' | sort -u
end
complete -c temper -n __fish_use_subcommand -f -a '@'
complete -c temper -n 'not __fish_use_subcommand' -a '(__temper_flags)'
)sh";

/// Escapes text for roff: hyphens stay hyphens, and no line begins with a roff command.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-' || c == '\\')
      out += '\\';
    out += c;
    if (c == '\n')
      out += "\\&";
  }
  return out;
}

std::string man_page(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH TEMPER 1 \"\" \"temper {0}\" \"Temper\"\n.SH NAME\ntemper \\- {1}\n"
      ".SH SYNOPSIS\n.B temper\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH COMMANDS\n",
      program_version(),
      roff(app.get_description()));
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    page +=
        fmt::format(".SS {}\n{}.\n", roff(command->get_name()), roff(command->get_description()));
    for (const CLI::Option* option : command->get_options()) {
      page += fmt::format(
          ".TP\n.B {}\n{}\n", roff(option->get_name(true, true)), roff(option->get_description()));
    }
    if (const std::string examples = command->get_footer(); !examples.empty())
      page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(examples));
  }
  return page + fmt::format(
                    ".SH EXIT STATUS\n.nf\n{}\n.fi\n.SH ENVIRONMENT\n.nf\n{}\n.fi\n"
                    ".SH SEE ALSO\nREADME.md and docs/; an installed package has them in "
                    "/usr/share/doc/temper.\n",
                    roff(exit_codes_text()),
                    roff(variables_text()));
}

}  // namespace

void add_completion(CLI::App& app) {
  auto* command =
      app.add_subcommand("completion", "Print the completion script for bash, zsh or fish");
  command->footer(
      "Examples:\n  temper completion bash > ~/.local/share/bash-completion/completions/temper");
  command
      ->add_option_function<std::string>(
          "shell",
          [&app](const std::string& shell) {
            std::string words;
            for (const CLI::App* known : app.get_subcommands(nullptr))
              words += (words.empty() ? "" : " ") + known->get_name();
            std::string script(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
            script.replace(script.find('@'), 1, words);
            std::fputs(script.c_str(), stdout);
          },
          "Shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

void add_man_page(CLI::App& app) {
  auto* command = app.add_subcommand("man", "Print the manual page for `man`");
  command->footer("Examples:\n  temper man | man -l -");
  command->parse_complete_callback([&app] { std::fputs(man_page(app).c_str(), stdout); });
}

}  // namespace temper::cli
