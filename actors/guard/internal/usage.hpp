// What the processes below another use: async-signal-safe calls only.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace temper::actors {

/// Of a guarded command, with all that it starts.
inline constexpr std::size_t kMostProcesses = 512;

struct DescendantUsage {
  std::size_t processes = 0;  ///< kMostProcesses + 1: or more.
  /// Memory that their mappings hold: anonymous or shared, not of files. What several of them share
  /// counts once.
  std::int64_t memory = 0;
};

/// Of all descendants of `root`; empty where the kernel does not list them. `enough`: a rough
/// upper bound of the memory is given where it is no larger than this, as it is cheaper.
DescendantUsage usage_below(pid_t root, std::int64_t enough);

}  // namespace temper::actors
