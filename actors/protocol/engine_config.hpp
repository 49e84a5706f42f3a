// The engine of a role: the built-in engine, a Python class of the user, any program that speaks
// the protocol, or an inference server. The `engine` section of each role, and part of the role
// configuration that a worker receives.
#pragma once

#include "core/choices.hpp"
#include "core/describe.hpp"
#include "core/units.hpp"

#include <map>

namespace temper {
namespace actors {

enum class EngineKind { Native, Python, Command, Vllm, Sglang, Openai, Llamacpp };

/// How an inference server gets new weights.
enum class ServerLoading {
  None,     ///< Not a server.
  Routes,   ///< It has routes that load a folder.
  Request,  ///< By the request that the user gives (`reload`); without one, it is restarted.
  Restart,  ///< It is restarted.
};

/// What Temper has to know about a kind before it has reached an engine of it.
struct EngineTraits {
  EngineKind value;
  std::string_view name;
  std::string_view doc;  ///< For the reference of the configuration.
  ServerLoading loading = ServerLoading::None;
  bool scores = true;              ///< Returns the log-probs of given tokens.
  bool documents_sampling = true;  ///< Log-probs are known to be those of what it samples from.
  bool releases_memory = true;     ///< So it can time-share its cards.
  bool reads_gguf = false;         ///< Its model is a file in the format of llama.cpp.
};

namespace detail {
inline constexpr std::string_view kServerDoc = "servers (docs/how-to/servers.md)";
}  // namespace detail

inline constexpr auto kEngineKinds = std::to_array<EngineTraits>({
    {EngineKind::Native, "native", "the built-in engine"},
    {EngineKind::Python, "python", "a Python class of yours"},
    {EngineKind::Command,
     "command",
     "a program that speaks the protocol (docs/how-to/write-a-role.md)"},
    {EngineKind::Vllm, "vllm", detail::kServerDoc, ServerLoading::Routes},
    {EngineKind::Sglang, "sglang", detail::kServerDoc, ServerLoading::Routes},
    {.value = EngineKind::Openai,
     .name = "openai",
     .doc = detail::kServerDoc,
     .loading = ServerLoading::Request,
     .documents_sampling = false,
     .releases_memory = false},
    {.value = EngineKind::Llamacpp,
     .name = "llamacpp",
     .doc = detail::kServerDoc,
     .loading = ServerLoading::Restart,
     .scores = false,
     .releases_memory = false,
     .reads_gguf = true},
});

constexpr const EngineTraits& traits_of(EngineKind kind) {
  return row_of(kEngineKinds, kind);
}

/// True if an inference server does the work, reached over HTTP.
constexpr bool is_server(EngineKind kind) {
  return traits_of(kind).loading != ServerLoading::None;
}

struct EngineConfig {
  EngineKind kind = EngineKind::Native;
  std::string use;
  std::map<std::string, std::string> with;
  std::string python;
  std::vector<std::string> command;
  // Only for servers.
  std::vector<std::string> data;
  std::vector<std::string> control;
  std::string start;
  std::string served_model;
  std::string folder;
  Duration patience = std::chrono::minutes(10);
  double tolerance = 1e-4;
  std::string reload;

  /// True if new weights are loaded by restarting the server with their folder.
  bool restarts_server() const {
    const ServerLoading loading = traits_of(kind).loading;
    return start.find("{model}") != std::string::npos &&
           (loading == ServerLoading::Restart ||
            (loading == ServerLoading::Request && reload.empty()));
  }
};

namespace detail {

void describe_server(auto& v, EngineConfig& c) {
  v.field(6,
          "data",
          c.data,
          {.doc = "Servers: addresses for requests, one entry per replica, in order: "
                  "`http://HOST:PORT`. A single entry can stand for all replicas: `file:PATH`, a "
                  "file with "
                  "one address per line that may appear later, or `dns://NAME:PORT`, a "
                  "name that resolves to one address per server.",
           .example = "[\"http://gpu-1:8000\", \"http://gpu-2:8000\"]"});
  v.field(7,
          "control",
          c.control,
          {.doc = "Servers: addresses for control requests (weights, pauses, versions), as in "
                  "`data`; empty: "
                  "the same addresses. Required if `data` names a router."});
  v.field(8,
          "start",
          c.start,
          {.doc = "Servers: shell command that starts a server. Temper supervises and restarts it. "
                  "`{model}`, `{host}` and `{port}` are replaced by the weights folder and "
                  "the address. Empty: the servers already run.",
           .example = "vllm serve {model} --host {host} --port {port}"});
  v.field(
      9,
      "served_model",
      c.served_model,
      {.doc = "Servers: model name in requests; empty: the first model that the server lists."});
  v.field(
      10,
      "folder",
      c.folder,
      {.doc =
           "Servers: folder into which weights are written and which the servers can read; empty: "
           "a folder in TMPDIR of this machine."});
  v.field(11,
          "patience",
          c.patience,
          {.doc = "Servers: how long a server may be unavailable before its actor fails.",
           .min = std::chrono::seconds(1)});
  v.field(
      12,
      "tolerance",
      c.tolerance,
      {.doc = "Servers: largest mean difference between the log-probs that the trainer and the "
              "server compute for the canary, a fixed sequence that is compared for each version. "
              "Use 1e-4 for float32 and 2e-2 for bfloat16.",
       .min = 0.0,
       .max = 10.0});
  v.field(13,
          "reload",
          c.reload,
          {.doc = "`openai`: request that makes a server load new weights: `METHOD /PATH` and, "
                  "after a space, the body; `{model}` and `{label}` are replaced by the folder and "
                  "its name. Empty: the server is restarted for each version.",
           .example = "'POST /reload {\"path\": \"{model}\"}'"});
}

}  // namespace detail

void describe(auto& v, EngineConfig& c) {
  static const std::string kinds = doc_of_rows("", kEngineKinds);
  v.field(1, "kind", c.kind, {.doc = kinds});
  v.field(2,
          "use",
          c.use,
          {.doc = "python: module and class.", .example = "my_package.my_module:MyTrainer"});
  v.field(
      3,
      "with",
      c.with,
      {.doc =
           "python: keyword arguments of the class; values that parse as JSON (a number, `true`, a "
           "list) are passed as such, others as text.",
       .example = "{learning_rate: 1e-3}"});
  v.field(
      4,
      "python",
      c.python,
      {.doc = "python: interpreter that has the package `temper`; empty: the environment variable "
              "TEMPER_PYTHON, otherwise `python3`."});
  v.field(5,
          "command",
          c.command,
          {.doc = "command: program and arguments. Its environment has TEMPER_ENDPOINT, "
                  "TEMPER_NAME and TEMPER_CREDENTIALS.",
           .example = "[./my_engine, --verbose]"});
  detail::describe_server(v, c);
}

}  // namespace actors

template <>
struct EnumNames<actors::EngineKind> {
  static constexpr auto value = names_of_rows(actors::kEngineKinds);
};

}  // namespace temper
