// A process that confines itself, between fork and exec: async-signal-safe calls only.
#pragma once

#include "actors/guard/sandbox.hpp"

#include <sys/types.h>

namespace temper::actors {

/// Prepared before the fork.
struct ConfinePlan {
  SandboxKind kind = SandboxKind::None;
  std::int64_t memory = 0;
  const char* const* covered = nullptr;  ///< Folders to be empty, up to a null.
  const char* working_folder = "/";
  /// "65534 1000 1\n": the user and the group as which it sees itself, and who it is. Not root, so
  /// that exec leaves it no capability in its namespaces.
  const char* user_map = "";
  const char* group_map = "";
  std::int64_t tasks = 0;  ///< Processes and threads in its namespaces; 0: no such limit.
};

/// What failed, so that its error can be named: the number that is reported is errno plus this.
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

/// As fork(), into namespaces of its own where the plan wants that.
pid_t fork_confined(const ConfinePlan& plan);
/// In the child: 0, or the number to report.
int confine_self(const ConfinePlan& plan);

/// In words.
std::string confine_error(int number);

}  // namespace temper::actors
