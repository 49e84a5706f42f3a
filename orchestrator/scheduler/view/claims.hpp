// Checks of what actors report against what they may report now, before it becomes an event.
// actors/protocol/permissions.hpp names the claims. Nothing changes here.
#pragma once

#include "actors/protocol/permissions.hpp"
#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

#include <optional>
#include <string>

namespace temper::orchestrator {

/// A claim of an actor's message that cannot be true.
struct InvalidClaim {
  actors::Claim claim = actors::Claim::LeaseIsItsOwn;
  std::string what;
};

actors::Stage stage_of(const RunState& run, ActorId actor);

/// The first invalid claim of an actor's message, as an event; nullopt: it is possible. `now`: when
/// the message was received.
std::optional<InvalidClaim> find_invalid_claim(const RunState& run,
                                               const Event& reported,
                                               Time now);
/// The same for one response that an engine reports.
std::optional<InvalidClaim> find_invalid_claim(const RunState& run,
                                               ActorId engine,
                                               const event::Generated::Item& item);

}  // namespace temper::orchestrator
