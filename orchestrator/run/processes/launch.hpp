// Launching workers: the program, the endpoint and the credentials.
#pragma once

#include "actors/asio/router.hpp"
#include "actors/transport/credentials.hpp"
#include "core/temporary_folder.hpp"
#include "orchestrator/pipeline/sections.hpp"
#include "orchestrator/run/processes/key_ring.hpp"
#include "orchestrator/run/processes/supervisor.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace temper::orchestrator {

/// How an actor's process finds and authenticates to its run.
struct ActorPlace {
  std::string name;  ///< Its slot.
  std::string endpoint;
  std::filesystem::path credentials;  ///< Of LaunchCredentials::issue().
  std::filesystem::path log;
};

/// The program that does an actor's work, and its first arguments: `worker` for a native engine,
/// temper-server-worker beside it for an inference server, otherwise as the engine's section says.
/// Error: the interpreter or program is missing.
Result<std::vector<std::string>> actor_command(const std::filesystem::path& worker,
                                               const actors::EngineConfig& engine);

/// The same, as a child process of this run. Errors: see actor_command().
Result<ChildSpec> actor_child(const ActorPlace& place,
                              const std::filesystem::path& worker,
                              const actors::EngineConfig& engine);

/// The secrets of one run, and a credentials file for each process that it launches: mode 0600, in
/// a folder of mode 0700 that is removed with this object. Each process gets its own key pair.
class LaunchCredentials {
 public:
  /// `head`: the identity of the run's orchestrators, if workers attach; otherwise one is made.
  /// Error: Io if the temporary folder cannot be created.
  static Result<LaunchCredentials> create(const TransportSection& transport,
                                          const std::optional<HeadIdentity>& head = std::nullopt);

  /// For actor.hello.
  const std::string& secret() const { return secret_; }
  /// Of the orchestrator's socket; none if connections are not encrypted.
  const std::optional<actors::KeyPair>& key() const { return key_; }

  /// Writes the file for a process that is about to start as `name`, and lets `router` accept its
  /// key. Earlier credentials of that name are void. Error: Io if the file cannot be written.
  Result<std::filesystem::path> issue(const std::string& name, actors::AsioRouter& router);

 private:
  LaunchCredentials(TemporaryFolder folder, std::string secret, std::optional<actors::KeyPair> key)
      : folder_(std::move(folder)), secret_(std::move(secret)), key_(std::move(key)) {}
  TemporaryFolder folder_;
  std::string secret_;
  std::optional<actors::KeyPair> key_;
  std::map<std::string, std::string> issued_;  ///< Public key by name.
};

/// The orchestrator's address, as RouterSocket::bind() takes it.
std::string socket_address(const TransportSection& transport);

}  // namespace temper::orchestrator
