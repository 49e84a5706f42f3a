// What every driver needs to launch workers: where they connect, what they prove themselves with.
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

/// Where an actor finds its run, and what it proves itself with.
struct ActorPlace {
  std::string name;  ///< Its slot.
  std::string endpoint;
  std::filesystem::path credentials;  ///< Of Handout::give().
  std::filesystem::path log;
};

/// The program that does an actor's work, and its first words: `worker` where the engine is our
/// own; temper-server-worker beside it where that is a server's; else what the engine's section
/// says. Error: an interpreter or program that is not there.
Result<std::vector<std::string>> actor_command(const std::filesystem::path& worker,
                                               const actors::EngineConfig& engine);

/// The same as a process that this run starts.
Result<ChildSpec> actor_child(const ActorPlace& place,
                              const std::filesystem::path& worker,
                              const actors::EngineConfig& engine);

/// The secrets of one run, and the files in which its processes are handed theirs: mode 0600, in a
/// folder of mode 0700, gone with this object. Each process gets a key pair of its own.
class Handout {
 public:
  /// `head`: what the run's orchestrators prove themselves with, where workers attach to it; else
  /// it is made.
  static Result<Handout> create(const TransportSection& transport,
                                const std::optional<HeadIdentity>& head = std::nullopt);

  /// For actor.hello.
  const std::string& secret() const { return secret_; }
  /// Of the orchestrator's socket; none where connections are not encrypted.
  const std::optional<actors::KeyPair>& key() const { return key_; }

  /// The file for a process that is about to start as `name`, whose key `router` lets in. What was
  /// handed out under that name before is void.
  Result<std::filesystem::path> give(const std::string& name, actors::AsioRouter& router);

 private:
  Handout(TemporaryFolder folder, std::string secret, std::optional<actors::KeyPair> key)
      : folder_(std::move(folder)), secret_(std::move(secret)), key_(std::move(key)) {}
  TemporaryFolder folder_;
  std::string secret_;
  std::optional<actors::KeyPair> key_;
  std::map<std::string, std::string> given_;  ///< Open key by name.
};

/// Where the orchestrator listens, as RouterSocket::bind() takes it.
std::string socket_address(const TransportSection& transport);

/// The last line of a worker's output.
std::string_view last_line(std::string_view text);

}  // namespace temper::orchestrator
