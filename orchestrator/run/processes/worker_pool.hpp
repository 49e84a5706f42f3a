// Worker processes of a run in virtual time: started, registered, kept alive by heartbeats, and
// watched by wall clock. Several pools may share one Asio loop; a pool that waits runs it for all,
// so that no worker of another pool falls silent meanwhile.
//
// A worker that ends, falls silent, fails or does not answer in time is lost, and with it the pool:
// every later wait returns that loss, by name. All calls and callbacks on the thread that
// runs the loop.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/transport/message.hpp"
#include "core/log.hpp"
#include "orchestrator/pipeline/sections.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace temper::orchestrator {

struct WorkerPoolOptions {
  std::vector<std::string> names;  ///< Of the actors (of a worker's one connection), by id.
  std::filesystem::path worker;    ///< The program that runs actors.
  std::function<std::filesystem::path(std::string_view)> log_of;  ///< Of a process's output.
  TransportSection transport;
  std::vector<std::string> arguments = {};  ///< Of the program, besides.
};

class WorkerPool {
 public:
  /// A message of an actor, except heartbeats and its registration. Error: a protocol violation;
  /// the actor is lost.
  using OnMessage = std::function<Status(ActorId, const actors::IncomingMessage&)>;

  /// `io` outlives this. Error: the socket cannot be made.
  static Result<std::unique_ptr<WorkerPool>> create(boost::asio::io_context& io,
                                                    WorkerPoolOptions options,
                                                    OnMessage on_message,
                                                    const Log& log);
  /// Kills what is still there.
  ~WorkerPool();

  /// What the actor is told at its registration.
  void assign(ActorId actor, actors::RoleConfig role);
  /// Starts the actor's process, which has its name.
  Status start(ActorId actor);
  /// Without effect on an actor that is not connected: its loss is known or on its way.
  void send(ActorId actor, actors::OutgoingMessage message);
  void lose(ActorId actor, const std::string& reason);

  /// How long a wait may take, by wall time: in all, or since an actor last said anything.
  struct Patience {
    enum class Since { Begin, LastWord };
    Duration length;
    Since since = Since::Begin;
  };
  /// Runs the loop until `done`. Errors: a loss, or the end of patience, for which the actor that
  /// `owing` names is blamed.
  Status wait(Patience patience,
              const std::function<bool()>& done,
              const std::function<ActorId()>& owing);
  /// Runs what is due and returns. Error: a loss.
  Status serve();
  /// Workers may end from here on.
  void let_end();
  /// Lets workers end, and kills those that have not ended within `grace` or never registered. The
  /// last call.
  void leave(Duration grace);

  bool has_loss() const;
  const std::string& name(ActorId actor) const;

 private:
  struct Impl;
  explicit WorkerPool(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
