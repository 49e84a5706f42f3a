// Memory and number of the descendants of a process. Async-signal-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace temper::actors {

/// Limit for a guarded command and its descendants.
inline constexpr std::size_t kMostProcesses = 512;

struct DescendantUsage {
  std::size_t processes = 0;  ///< At most kMostProcesses + 1.
  /// Bytes of anonymous and shared mappings, without files. Memory shared by several processes
  /// counts once.
  std::int64_t memory = 0;
};

/// Usage of all descendants of `root`; empty if the kernel does not list them. Returns a rough
/// upper bound of the memory, which is cheaper, if that is at most `enough`.
DescendantUsage usage_below(pid_t root, std::int64_t enough);

}  // namespace temper::actors
