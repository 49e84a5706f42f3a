// Waiting in place of computation, for engines that only pretend to work.
#pragma once

#include "core/clock.hpp"

namespace temper {

/// Returns at `until`, never earlier. The thread sleeps, which leaves the core to others as work on
/// an accelerator would, and spins only for the last 0.2 ms, which a sleep would miss.
void pass_time(const RealClock& clock, Time until);

}  // namespace temper
