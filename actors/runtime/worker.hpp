// A worker process: it registers with the orchestrator, becomes the role it is told, and runs it.
//
// Two threads. The calling thread runs the role: messages first, then pieces of work. The I/O
// thread owns the socket: it sends heartbeats on time however long a piece takes, and judges from
// the orchestrator's silence that it is gone. They share two queues and nothing else.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/relay/relay.hpp"
#include "actors/runtime/role.hpp"
#include "actors/transport/credentials.hpp"

#include <functional>
#include <memory>

namespace temper::actors {

struct WorkerOptions {
  std::string endpoint;
  std::string name;         ///< Actor slot, e.g. "rollout-0".
  Credentials credentials;  ///< What it was handed at launch.
  TransportConfig transport{};
  Duration registration_deadline = std::chrono::seconds(10);
  Duration hello_interval = std::chrono::seconds(1);
  /// How long the role may still be busy after the orchestrator was found gone.
  Duration abandon_after = std::chrono::seconds(5);
  /// How long messages may take to leave at the end.
  Duration flush = std::chrono::seconds(2);
  /// Inline: the role runs on the thread that owns the socket, which spares an exchange two
  /// hand-overs. For roles whose messages take far less than a heartbeat and that have no work()
  /// of their own.
  enum class Threads { Two, Inline } threads = Threads::Two;
  /// Role::work() is called at least this often.
  Duration idle_interval = std::chrono::milliseconds(100);
  /// Ends the process at once, on the I/O thread: the orchestrator is gone and the role does not
  /// come back from its piece of work. If it returns, the worker waits on.
  std::function<void(const Error&)> abandon{};
  /// Borrowed; null: weights come to the role as the orchestrator sends them.
  Relay* relay = nullptr;
  /// What actor.hello says besides name, secret, process and host: of an attached worker.
  Hello hello{};
  /// Asked every second until there is a welcome; false: the orchestrator is not there any more.
  std::function<bool()> still_there{};
  /// Its key was turned away, which is the error that follows.
  std::function<void()> on_refused{};
  /// After the welcome: the orchestrator is gone, or has let this worker go.
  std::function<void(const Error&)> on_lost{};
};

/// Builds the role (may take long: heartbeats go on). An error or an exception is reported to the
/// orchestrator and ends the worker.
using RoleFactory = std::function<Result<std::unique_ptr<Role>>(const Welcome&)>;

/// Returns without error after actor.stop, also one that comes in place of a welcome. Errors: not
/// registered in time (Timeout), rejected with the orchestrator's reason or for its key
/// (InvalidInput), not still_there (NotFound), orchestrator silent for the heartbeat timeout
/// (Unavailable, after on_lost), the role failed (its error).
Status run_worker(const WorkerOptions& options,
                  const RoleFactory& make_role,
                  const Clock& clock,
                  const Log& log);

}  // namespace temper::actors
