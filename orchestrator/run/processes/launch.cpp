#include "orchestrator/run/processes/launch.hpp"

#include "actors/guard/executable.hpp"
#include "core/secret.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// The program as execve() takes it: found in PATH unless it has a folder.
Result<std::string> find_program(const std::string& name, std::string_view key) {
  if (name.find('/') != std::string::npos)
    return name;
  auto found = actors::find_executable(name);
  if (!found)
    return Error(found.error()).within(key);
  return found;
}

Result<std::string> interpreter(const std::string& given) {
  return given.empty() ? find_program(actors::default_python(), "TEMPER_PYTHON")
                       : find_program(given, "engine.python");
}

}  // namespace

Result<std::vector<std::string>> actor_command(const fs::path& worker,
                                               const actors::EngineConfig& engine) {
  using Command = std::vector<std::string>;
  if (engine.kind == actors::EngineKind::Command) {
    Command command = engine.command;
    TEMPER_TRY(command.front(), find_program(engine.command.front(), "engine.command"));
    return command;
  }
  if (engine.kind == actors::EngineKind::Python) {
    TEMPER_TRY(const std::string python, interpreter(engine.python));
    return Command{python, "-m", "temper.worker"};
  }
  if (actors::is_server(engine.kind))
    return Command{(worker.parent_path() / "temper-server-worker").string()};
  return Command{worker.string(), "actor"};
}

Result<ChildSpec> actor_child(const ActorPlace& place,
                              const fs::path& worker,
                              const actors::EngineConfig& engine) {
  ChildSpec spec;
  spec.name = place.name;
  spec.log = place.log;
  spec.environment = {{"TEMPER_ENDPOINT", place.endpoint},
                      {"TEMPER_NAME", place.name},
                      {"TEMPER_CREDENTIALS", place.credentials.string()},
                      {"OMP_WAIT_POLICY", "passive"}};
  if (engine.kind == actors::EngineKind::Python)  // It may need verifiers of that program.
    spec.environment.emplace("TEMPER_WORKER", worker.string());
  TEMPER_TRY(spec.command, actor_command(worker, engine));
  if (engine.kind == actors::EngineKind::Command)
    return spec;
  for (std::string argument : {std::string("--connect"),
                               place.endpoint,
                               std::string("--name"),
                               place.name,
                               std::string("--parent"),
                               std::to_string(::getpid()),
                               std::string("--credentials"),
                               place.credentials.string()}) {
    spec.command.push_back(std::move(argument));
  }
  return spec;
}

Result<LaunchCredentials> LaunchCredentials::create(const TransportSection& transport,
                                                    const std::optional<HeadIdentity>& head) {
  remove_abandoned_folders();  // of orchestrators that were killed
  TEMPER_TRY(TemporaryFolder folder, TemporaryFolder::create("temper-keys-"));
  if (head)
    return LaunchCredentials(std::move(folder), head->secret, head->key);
  std::optional<actors::KeyPair> key;
  if (transport.kind == TransportKind::Tcp && transport.security == TransportSecurity::Curve)
    key = actors::KeyPair::create();
  return LaunchCredentials(std::move(folder), make_secret(), std::move(key));
}

Result<std::filesystem::path> LaunchCredentials::issue(const std::string& name,
                                                       actors::AsioRouter& router) {
  actors::Credentials credentials{.secret = secret_, .orchestrator_key = {}, .own = {}};
  if (key_) {
    credentials.orchestrator_key = key_->open;
    credentials.own = actors::KeyPair::create();
    std::string& open = issued_[name];
    if (!open.empty())
      router.keep_out(open);
    open = credentials.own.open;
    router.let_in(open, name);
  }
  const std::filesystem::path path = folder_.path() / name;
  std::error_code none_before;
  std::filesystem::remove(path, none_before);
  TEMPER_TRY_STATUS(write_credentials(path, credentials));
  return path;
}

std::string socket_address(const TransportSection& t) {
  return t.kind == TransportKind::Ipc ? "ipc" : fmt::format("tcp://{}:{}", t.bind, t.port);
}

}  // namespace temper::orchestrator
