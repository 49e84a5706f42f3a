// Seconds since 1970 in wall-clock time, for files that other programs read. Never used to order
// events.
#pragma once

namespace temper {

double unix_time();

}  // namespace temper
