// The sentences of facts: why an actor waits, why something was lost, given up or ended. The only
// place that words them; everything else compares their kinds. Sentences are for terminals, reports
// and pages. They are in no log, so that a better wording changes no replay.
#pragma once

#include "orchestrator/scheduler/state/commands.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// "groups: 7 (v0 3) and others, 1 of 4 ready"; without_instance() of it: "groups". Of
/// WaitKind::Work empty: nothing is waited for.
std::string sentence(const WaitCause& cause);

/// `actors`: of the run, for their names. A reason that names its actor begins with that name.
std::string sentence(const Reason& reason, const std::vector<ActorSpec>& actors);
/// Empty: there is none.
std::string sentence(const std::optional<Reason>& reason, const std::vector<ActorSpec>& actors);

/// How a run ended, for people: `reason` is empty where it is ok.
struct RunEnd {
  bool ok = false;
  bool stopped = false;  ///< On the user's request.
  std::string reason{};
};
RunEnd end_of(const command::Finish& finish, const std::vector<ActorSpec>& actors);

}  // namespace temper::orchestrator
