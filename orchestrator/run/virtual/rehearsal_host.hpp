// Actors in worker processes over ZeroMQ, several per process and connection. Each step is one
// exchange: time.advance to each worker with actors in the step, with their messages, and
// time.advanced back, with what they say.
//
// Everything runs on the thread that calls advance(), which waits for the workers by wall clock. A
// worker that ends, falls silent or does not answer in time is an error, by name. The timeouts are
// generous (at least a minute, whatever the transport section says), because nothing in the run
// depends on wall time.
#pragma once

#include "core/log.hpp"
#include "orchestrator/pipeline/sections.hpp"
#include "orchestrator/run/virtual/actor_host.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace boost::asio {
class io_context;
}

namespace temper::orchestrator {

struct RehearsalOptions {
  std::vector<std::string> names;                                 ///< Of the actors, by id.
  std::filesystem::path worker;                                   ///< The program that runs actors.
  std::function<std::filesystem::path(std::string_view)> log_of;  ///< Of a worker's output.
  TransportSection transport;
};

class RehearsalHost final : public ActorHost {
 public:
  /// `io` may be shared, and outlives this. Error: the socket cannot be created.
  static Result<std::unique_ptr<RehearsalHost>> create(boost::asio::io_context& io,
                                                       RehearsalOptions options,
                                                       const Log& log);
  ~RehearsalHost() override;

  Status launch(ActorId actor, const actors::RoleConfig& role) override;
  void deliver(ActorId actor, actors::OutgoingMessage message) override;
  Status advance(std::span<const ActorId> actors,
                 Time now,
                 std::vector<Arrival>& arrivals) override;
  std::optional<Time> next_event(ActorId actor) const override;
  void finish(std::span<const ActorId> actors, Time now, std::vector<Arrival>& arrivals) override;

 private:
  struct Impl;
  explicit RehearsalHost(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
