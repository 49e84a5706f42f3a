// Confinement of a process by itself, between fork and exec: async-signal-safe calls only.
#pragma once

#include "actors/guard/sandbox.hpp"

#include <sys/types.h>

namespace temper::actors {

/// Prepared before the fork.
struct ConfinePlan {
  SandboxKind kind = SandboxKind::None;
  std::int64_t memory = 0;
  const char* const* covered = nullptr;  ///< Folders that appear empty; ends with a null pointer.
  const char* working_folder = "/";
  /// "65534 1000 1
  /// ": id inside the namespace, our id outside, count. Not root, so that exec grants no
  /// capabilities in the namespaces.
  const char* user_map = "";
  const char* group_map = "";
  std::int64_t tasks = 0;  ///< Limit of processes and threads in its namespaces; 0: no limit.
};

/// The step that failed. The reported number is errno plus this value.
enum class ConfineStep : int {
  None = 0,
  Users = 1 << 12,
  Mounts = 2 << 12,
  ReadOnly = 3 << 12,
  Cover = 4 << 12,
  Limits = 5 << 12,
  Filter = 6 << 12,
  Devices = 7 << 12,
  Writes = 8 << 12,
};
inline constexpr int kErrnoMask = (1 << 12) - 1;

/// Like fork(), but into new namespaces if the plan requires them.
pid_t fork_confined(const ConfinePlan& plan);
/// Called in the child. Returns 0, or the number to report.
int confine_self(const ConfinePlan& plan);

/// Describes a reported number.
std::string confine_error(int number);

}  // namespace temper::actors
