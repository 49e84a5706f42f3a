// An actor on simulated hardware: a logical process whose time is advanced by its driver. The same
// object runs in a worker process (rehearsal) and inside the driver (in-process).
//
// The driver calls on_message() for each command at `now`, then advance(now); or, if no other event
// is earlier, advance(*next_event()). An actor may compute several of its own events in closed
// form. Its messages are sent at the `now` of the call. All calls come from one thread.
// Deterministic: equal calls give equal messages.
#pragma once

#include "actors/runtime/role.hpp"
#include "core/units.hpp"

#include <optional>

namespace temper::actors {

class SimulatedActor {
 public:
  virtual ~SimulatedActor() = default;
  /// Called once, at launch. Errors: a configuration that the role cannot run with, such as a
  /// layout that does not divide the cards. After an error of any function the actor is not called
  /// again.
  virtual Status start(Time now, Outbox& out) = 0;
  /// Requires: `now` is not before any earlier call, nor after next_event().
  virtual Status on_message(const IncomingMessage& message, Time now, Outbox& out) = 0;
  /// Handles everything due at or before `now`. Requires: see on_message().
  virtual Status advance(Time now, Outbox& out) = 0;
  /// The time of the next message that the actor may send on its own; empty if it sends none.
  /// Internal events before that do not count.
  virtual std::optional<Time> next_event() const = 0;
};

}  // namespace temper::actors
