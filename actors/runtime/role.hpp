// What an actor does, apart from how it is run: the worker process, an in-process driver and tests
// all call the same three functions, always from one thread.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/transport/message.hpp"

#include <functional>

namespace temper::actors {

/// Where a role sends to: its orchestrator.
class Outbox {
 public:
  using Sink = std::function<void(OutgoingMessage)>;
  /// Value: for an orchestrator in this process, messages are handed over as they are.
  enum class Form { Encoded, Value };
  explicit Outbox(Sink sink, Form form = Form::Encoded) : sink_(std::move(sink)), form_(form) {}

  /// Queues `message` and returns; messages arrive in the order of their send().
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
  /// Pending: call work() again as soon as waiting messages are handled.
  enum class Work { Pending, None };

  virtual ~Role() = default;
  /// Once, right after actor.ready was sent.
  virtual Status start(Outbox&) { return {}; }
  /// Messages in the order they were sent. An error ends the actor, with actor.failed.
  virtual Status on_message(const IncomingMessage& message, Outbox& out) = 0;
  /// One bounded piece of work (a decode step, a micro-batch). Also called now and then while there
  /// is none, so that reports can be flushed. An error ends the actor.
  virtual Result<Work> work(Outbox&) { return Work::None; }
  /// Once, at actor.stop, after the messages before it: send what is still to be sent.
  virtual Status stop(Outbox&) { return {}; }
  /// Another orchestrator has welcomed this worker to the same role: forgets all work, and keeps
  /// what took long to load. False: it cannot; it is built anew.
  virtual bool rejoin(const Welcome&) { return false; }
};

}  // namespace temper::actors
