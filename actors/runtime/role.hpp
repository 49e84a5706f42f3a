// The interface of an actor's work, independent of how the actor is run. A worker process, an
// in-process driver and tests call the same functions, always from one thread.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/transport/message.hpp"

#include <functional>

namespace temper::actors {

/// Sends a role's messages to its orchestrator.
class Outbox {
 public:
  using Sink = std::function<void(OutgoingMessage)>;
  /// Value: the orchestrator is in this process, and messages are passed without encoding.
  enum class Form { Encoded, Value };
  explicit Outbox(Sink sink, Form form = Form::Encoded) : sink_(std::move(sink)), form_(form) {}

  /// Queues `message` and returns. Messages arrive in the order in which they were sent.
  template <class M>
  void send(M&& message) {
    using Message = std::remove_cvref_t<M>;
    sink_(form_ == Form::Value ? outgoing_value<Message>(std::forward<M>(message))
                               : outgoing(message));
  }

 private:
  Sink sink_;
  Form form_;
};

class Role {
 public:
  /// Pending: call work() again once the waiting messages are handled.
  enum class Work { Pending, None };

  virtual ~Role() = default;
  /// Called once, right after actor.ready is sent. An error ends the actor.
  virtual Status start(Outbox&) { return {}; }
  /// Called for each message, in the order in which they were sent. An error ends the actor with
  /// actor.failed.
  virtual Status on_message(const IncomingMessage& message, Outbox& out) = 0;
  /// Does one bounded piece of work (a decode step, a micro-batch). Also called from time to time
  /// while there is none, so that reports can be flushed. An error ends the actor.
  virtual Result<Work> work(Outbox&) { return Work::None; }
  /// Called once at actor.stop, after all earlier messages: sends what is still unsent. An error
  /// ends the actor as failed.
  virtual Status stop(Outbox&) { return {}; }
  /// Called when another orchestrator has welcomed this worker to the same role: drops all work but
  /// keeps loaded state. Returns false if that is not possible; then the role is built again.
  virtual bool rejoin(const Welcome&) { return false; }
};

}  // namespace temper::actors
