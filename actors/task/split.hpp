// How a task's problems are split and shuffled, shared by the prompt sources.
#pragma once

#include <cstdint>

namespace temper::actors {

/// How many of `problems` are held out: the share rounded, at least one if the share is not 0, and
/// never all. Requires: problems > 0.
std::uint64_t held_out_count(std::uint64_t problems, double share);

/// The element of [0, n) that a stream visits as its number `index`: each exactly once an epoch, in
/// an order of (seed, epoch). Requires: n > 0.
std::uint64_t shuffled(std::uint64_t index, std::uint64_t n, std::uint64_t seed);

}  // namespace temper::actors
