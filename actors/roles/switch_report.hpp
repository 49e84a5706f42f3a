// Performs one action of a role switch and reports its cost; shared by all roles that own memory.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/roles/activity_log.hpp"
#include "actors/runtime/process.hpp"

namespace temper::actors {

/// The error text of a status for a result message; empty on success.
inline std::string error_text(const Status& status) {
  return status ? "" : status.error().context;
}

/// Bytes that an engine holds on its card and on the host.
struct HeldMemory {
  Bytes device, host;
};

/// True if the action frees device memory for other actors.
constexpr bool frees_device_memory(SwitchAction action) {
  return action == SwitchAction::OffloadOptimizer || action == SwitchAction::FreeWeights ||
         action == SwitchAction::OffloadReference;
}

/// Calls `held() -> HeldMemory`, `perform() -> Status` and `held()` again, then sends Switched with
/// the cost.
template <class Held, class Perform>
void perform_switch(
    SwitchAction action, ActivityLog& activity, Outbox& out, Held&& held, Perform&& perform) {
  Switched done;
  done.action = action;
  const Time begin = activity.now();
  const HeldMemory before = held();
  done.error = error_text(perform());
  if (frees_device_memory(action))
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
