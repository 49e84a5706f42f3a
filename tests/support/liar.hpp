// An actor that lies: what it was about to say with something changed, or something else
// altogether.
#pragma once

#include "core/random.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

namespace temper::orchestrator::testing {

/// The tag of the message that tells this event of an actor's.
std::uint32_t tag_of(const Event& event);

/// A message of `actor` in place of the true one. It may be true all the same.
Event lie_about(const Event& truth, ActorId actor, const Scheduler& scheduler, Random& random);

}  // namespace temper::orchestrator::testing
