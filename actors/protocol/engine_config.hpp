// Who does a role's work: our own engine, a class of the user's in Python, any program that speaks
// the protocol, or an inference server of the user's. The section `engine` of each role, and part
// of what a worker is told.
#pragma once

#include "core/describe.hpp"
#include "core/units.hpp"

#include <map>

namespace temper {
namespace actors {

enum class EngineKind { Native, Python, Command, Vllm, Sglang, Openai, Llamacpp };

/// Whether the work is done by an inference server that is spoken to over HTTP.
constexpr bool is_server(EngineKind kind) {
  return kind != EngineKind::Native && kind != EngineKind::Python && kind != EngineKind::Command;
}

struct EngineConfig {
  EngineKind kind = EngineKind::Native;
  std::string use;
  std::map<std::string, std::string> with;
  std::string python;
  std::vector<std::string> command;
  // Of servers.
  std::vector<std::string> data;
  std::vector<std::string> control;
  std::string start;
  std::string served_model;
  std::string folder;
  Duration patience = std::chrono::minutes(10);
  double tolerance = 1e-4;
  std::string reload;

  /// Whether new weights come into the server by starting it anew with their folder.
  bool restarts_server() const {
    const bool named = start.find("{model}") != std::string::npos;
    return named &&
           (kind == EngineKind::Llamacpp || (kind == EngineKind::Openai && reload.empty()));
  }
};

namespace detail {

template <class V>
void describe_server(V& v, EngineConfig& c) {
  v.field(6,
          "data",
          c.data,
          {.doc = "Servers: where requests go, one entry per replica, in order: "
                  "`http://HOST:PORT`. One entry alone may stand for all replicas: `file:PATH`, "
                  "whose lines are addresses and which may appear late, or `dns://NAME:PORT`, a "
                  "name with an address per server.",
           .example = "[\"http://gpu-1:8000\", \"http://gpu-2:8000\"]"});
  v.field(7,
          "control",
          c.control,
          {.doc = "Servers: where weights, pauses and versions are spoken of, as in `data`; empty: "
                  "at the same addresses. Needed where `data` names a router."});
  v.field(8,
          "start",
          c.start,
          {.doc = "Servers: a shell command that starts one, which is then watched and started "
                  "again; `{model}`, `{host}` and `{port}` stand for the folder of the weights and "
                  "the address. Empty: they are there.",
           .example = "vllm serve {model} --host {host} --port {port}"});
  v.field(9,
          "served_model",
          c.served_model,
          {.doc = "Servers: name of the model in requests; empty: what the server names first."});
  v.field(10,
          "folder",
          c.folder,
          {.doc = "Servers: folder that they can read, into which weights are written; empty: one "
                  "in TMPDIR of this machine."});
  v.field(11,
          "patience",
          c.patience,
          {.doc = "Servers: how long one may be away before its actor is given up.",
           .min = std::chrono::seconds(1)});
  v.field(12,
          "tolerance",
          c.tolerance,
          {.doc = "Servers: largest mean distance between the log-probs that the trainer and the "
                  "server give the canary, the fixed sequence that is compared at each version. "
                  "1e-4 suits float32; 2e-2 suits bfloat16.",
           .min = 0.0,
           .max = 10.0});
  v.field(13,
          "reload",
          c.reload,
          {.doc = "`openai`: the request that makes a server load new weights, `METHOD /PATH` and, "
                  "after a space, its body; `{model}` and `{label}` in it stand for the folder and "
                  "its name. Empty: the server is started again with each version.",
           .example = "'POST /reload {\"path\": \"{model}\"}'"});
}

}  // namespace detail

template <class V>
void describe(V& v, EngineConfig& c) {
  v.field(1,
          "kind",
          c.kind,
          {.doc = "`native`: our own engine; `python`: a class of the user's; `command`: a program "
                  "that speaks the protocol (docs/write-a-role.md); `vllm`, `sglang`, `openai`, "
                  "`llamacpp`: servers (docs/servers.md)."});
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
  detail::describe_server(v, c);
}

}  // namespace actors

template <>
struct EnumNames<actors::EngineKind> {
  using E = actors::EngineKind;
  static constexpr std::array<std::pair<E, std::string_view>, 7> value{{{E::Native, "native"},
                                                                        {E::Python, "python"},
                                                                        {E::Command, "command"},
                                                                        {E::Vllm, "vllm"},
                                                                        {E::Sglang, "sglang"},
                                                                        {E::Openai, "openai"},
                                                                        {E::Llamacpp, "llamacpp"}}};
};

}  // namespace temper
