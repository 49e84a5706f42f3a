// What every driver needs to launch workers: where they connect, what they prove themselves with.
#pragma once

#include "orchestrator/pipeline/sections.hpp"
#include "orchestrator/run/processes/supervisor.hpp"

#include <string>
#include <string_view>

namespace temper::orchestrator {

/// Where an actor finds its run, and what it proves itself with.
struct ActorPlace {
  std::string name;  ///< Its slot.
  std::string endpoint;
  std::string secret;
  std::filesystem::path log;
};

/// The process that does an actor's work: `worker` where the engine is our own, else what the
/// engine's section says. Error: an interpreter or program that is not there.
Result<ChildSpec> actor_child(const ActorPlace& place,
                              const std::filesystem::path& worker,
                              const actors::EngineConfig& engine);

/// 128 random bits, in hexadecimal.
std::string random_secret();

/// Where the orchestrator listens, as RouterSocket::bind() takes it.
std::string socket_address(const TransportSection& transport);

/// The last line of a worker's output.
std::string_view last_line(std::string_view text);

}  // namespace temper::orchestrator
