// A worker process: registers with the orchestrator, builds the role that it is assigned, and runs
// it.
//
// Two threads. The calling thread runs the role: messages first, then pieces of work. The I/O
// thread owns the socket: it sends heartbeats on time, however long a piece of work takes, and
// detects a silent orchestrator. They share two queues and nothing else.
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
  Credentials credentials;  ///< Credentials issued at launch.
  TransportConfig transport{};
  Duration registration_deadline = std::chrono::seconds(10);
  Duration hello_interval = std::chrono::seconds(1);
  /// How long the role may stay busy after the orchestrator was lost.
  Duration abandon_after = std::chrono::seconds(5);
  /// Time limit for sending queued messages at the end.
  Duration flush = std::chrono::seconds(2);
  /// Inline: the role runs on the thread that owns the socket, which saves two thread hand-overs
  /// per message. For roles that handle a message in far less than a heartbeat interval and have no
  /// work() of their own.
  enum class Threads { Two, Inline } threads = Threads::Two;
  /// Role::work() is called at least at this interval.
  Duration idle_interval = std::chrono::milliseconds(100);
  /// Called on the I/O thread if the orchestrator is gone and the role does not return from its
  /// work; should end the process. If it returns, the worker keeps waiting.
  std::function<void(const Error&)> abandon{};
  /// Borrowed. Null: the role gets weights as the orchestrator sends them.
  Relay* relay = nullptr;
  /// For attached workers: fields of actor.hello besides name, secret, process and host.
  Hello hello{};
  /// Called every second until the worker is welcomed; returns false if the orchestrator is gone.
  std::function<bool()> still_there{};
  /// Called when the key was refused; the error follows.
  std::function<void()> on_refused{};
  /// Called after the welcome if the orchestrator is lost or has released this worker.
  std::function<void(const Error&)> on_lost{};
};

/// Builds the role. May take long: heartbeats continue. An error or exception is reported to the
/// orchestrator and ends the worker.
using RoleFactory = std::function<Result<std::unique_ptr<Role>>(const Welcome&)>;

/// Returns success after actor.stop, also if it arrives instead of a welcome. Errors: Timeout if
/// not registered in time; InvalidInput if the orchestrator rejected the worker or its key;
/// NotFound if still_there() returned false; Unavailable, after on_lost(), if the orchestrator was
/// silent for the heartbeat timeout; otherwise the role's error.
Status run_worker(const WorkerOptions& options,
                  const RoleFactory& make_role,
                  const Clock& clock,
                  const Log& log);

}  // namespace temper::actors
