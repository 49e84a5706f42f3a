// The main function of the guard process, called right after fork.
#pragma once

#include "actors/guard/internal/confine.hpp"
#include "actors/guard/internal/usage.hpp"

namespace temper::actors {

/// Above the descriptors 0 to 3 that the guard and its command use.
inline constexpr int kFirstHighFd = 10;

/// Prepared before the fork, because nothing may allocate or lock between fork and exec.
/// Descriptors are 10 or above.
struct GuardPlan {
  const char* executable = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  int input = -1;  ///< Becomes the command's stdin; the next two its stdout and stderr.
  int output = -1;
  int errors = -1;
  int life_line = -1;
  int status = -1;
  ConfinePlan confine{};
};

/// Added to the wait status if the guard killed the command for exceeding a limit.
inline constexpr int kTookTooMuchMemory = 1 << 24;
inline constexpr int kStartedTooMany = 1 << 25;

/// Starts the command, waits until it ends or the lifeline closes, kills the remaining processes
/// and exits. A confined command is also killed once it and its descendants use more memory than
/// plan.confine.memory or are more than kMostProcesses, because the kernel's limits apply to single
/// processes. Checked every kUsagePeriod. Writes to `status`: 0 if the command was started,
/// otherwise errno or a number for confine_error(); then the command's wait status. Requires:
/// called in a fresh fork, with every signal blocked.
[[noreturn]] void run_guard(const GuardPlan& plan);

}  // namespace temper::actors
