// Time that an engine which computes nothing pretends to work.
#pragma once

#include "core/clock.hpp"

namespace temper {

/// Returns at `until`, never before it. The processor is left to others meanwhile, as the work of a
/// card would leave it; only the last 0.2 ms are spun, which a sleep would miss.
void pass_time(const RealClock& clock, Time until);

}  // namespace temper
