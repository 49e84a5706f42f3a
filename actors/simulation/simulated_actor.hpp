// An actor on simulated hardware: a logical process whose time moves only when its driver says so.
// The same object runs in a worker process (rehearsal) and inside the driver (in-process).
//
// The driver calls on_message() with what it commands at `now`, then advance(now); or, when nothing
// else happens earlier anywhere, advance(*next_event()). An actor may jump between its own events
// in closed form. What it sends goes out at the `now` of the call. All calls come from one thread;
// equal calls give equal messages.
#pragma once

#include "actors/runtime/role.hpp"
#include "core/units.hpp"

#include <optional>

namespace temper::actors {

class SimulatedActor {
 public:
  virtual ~SimulatedActor() = default;
  /// Once, at launch.
  virtual Status start(Time now, Outbox& out) = 0;
  /// Requires: now is not earlier than any time seen before, nor later than next_event().
  virtual Status on_message(const IncomingMessage& message, Time now, Outbox& out) = 0;
  /// Everything due at or before `now`. Requires: as above.
  virtual Status advance(Time now, Outbox& out) = 0;
  /// When the actor may say something next by itself; what it does in silence before does not
  /// count.
  virtual std::optional<Time> next_event() const = 0;
};

}  // namespace temper::actors
