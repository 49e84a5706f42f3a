// Who does a role's work: our own engine, a class of the user's in Python, or any program that
// speaks the protocol. The section `engine` of each role, and part of what a worker is told.
#pragma once

#include "core/describe.hpp"

#include <map>

namespace temper {
namespace actors {

enum class EngineKind { Native, Python, Command };

struct EngineConfig {
  EngineKind kind = EngineKind::Native;
  std::string use;
  std::map<std::string, std::string> with;
  std::string python;
  std::vector<std::string> command;
};

template <class V>
void describe(V& v, EngineConfig& c) {
  v.field(1,
          "kind",
          c.kind,
          {.doc = "`native`: our own engine; `python`: a class of the user's; `command`: a program "
                  "that speaks the protocol (docs/write-a-role.md)."});
  v.field(2,
          "use",
          c.use,
          {.doc = "python: module and class.", .example = "my_package.my_module:MyTrainer"});
  v.field(3,
          "with",
          c.with,
          {.doc = "python: its keyword arguments; what reads as JSON (a number, `true`, a list) is "
                  "given as that, all else as text.",
           .example = "{learning_rate: 1e-3}"});
  v.field(4,
          "python",
          c.python,
          {.doc = "python: the interpreter, with the package `temper`; empty: TEMPER_PYTHON of the "
                  "environment, else `python3`."});
  v.field(5,
          "command",
          c.command,
          {.doc = "command: the program and its arguments. It is given TEMPER_ENDPOINT, "
                  "TEMPER_NAME and TEMPER_CREDENTIALS in its environment.",
           .example = "[./my_engine, --verbose]"});
}

}  // namespace actors

template <>
struct EnumNames<actors::EngineKind> {
  using E = actors::EngineKind;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::Native, "native"}, {E::Python, "python"}, {E::Command, "command"}}};
};

}  // namespace temper
