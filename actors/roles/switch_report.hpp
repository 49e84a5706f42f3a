// How an actor carries out one action of a role switch and reports what it cost; the same for every
// role that owns memory.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/roles/activity_log.hpp"
#include "actors/runtime/process.hpp"

namespace temper::actors {

/// What a result message says of a status: empty if it is well.
inline std::string error_text(const Status& status) {
  return status ? "" : status.error().context;
}

/// Bytes an engine holds on its card and parked on the host.
struct HeldMemory {
  Bytes device, host;
};

/// Whether the action is to leave memory to others on the card.
constexpr bool leaves_the_card(SwitchAction action) {
  return action == SwitchAction::OffloadOptimizer || action == SwitchAction::FreeWeights ||
         action == SwitchAction::OffloadReference;
}

/// Runs `perform() -> Status` between two calls of `held() -> HeldMemory` and sends Switched.
template <class Held, class Perform>
void perform_switch(
    SwitchAction action, ActivityLog& activity, Outbox& out, Held&& held, Perform&& perform) {
  Switched done;
  done.action = action;
  const Time begin = activity.now();
  const HeldMemory before = held();
  done.error = error_text(perform());
  if (leaves_the_card(action))
    release_freed_memory();
  const HeldMemory after = held();
  activity.add(CardState::Switch, begin);
  done.cost.duration = activity.now() - begin;
  done.cost.device_before = before.device;
  done.cost.device_after = after.device;
  done.cost.host_before = before.host;
  done.cost.host_after = after.host;
  done.cost.process_peak = peak_resident_memory();
  done.cost.process_after = resident_memory();
  out.send(done);
}

}  // namespace temper::actors
