// Texts of typed facts: why an actor waits, and why something was lost, dropped or ended. All such
// texts that users see come from here; other code compares the types. They appear in terminals,
// reports and pages, but in no log, so that a better text does not break replay.
#pragma once

#include "orchestrator/scheduler/state/actor_spec.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// "groups: 7 (v0 3) and others, 1 of 4 ready"; for without_instance(cause): "groups". Empty for
/// WaitKind::Work, which is no wait.
std::string sentence(const WaitCause& cause);

/// `actors`: those of the run, for their names. If the reason has an actor, the text begins with
/// its name.
std::string sentence(const Reason& reason, const std::vector<ActorSpec>& actors);
/// Empty if there is no reason.
std::string sentence(const std::optional<Reason>& reason, const std::vector<ActorSpec>& actors);

/// How a run ended, as text. `reason` is empty if `ok`.
struct RunEnd {
  bool ok = false;
  bool stopped = false;  ///< By the user.
  std::string reason{};
};
RunEnd end_of(const command::Finish& finish, const std::vector<ActorSpec>& actors);

}  // namespace temper::orchestrator
