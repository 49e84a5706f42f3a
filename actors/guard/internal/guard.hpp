// The life of a guard process, from the fork that made it.
#pragma once

#include "actors/guard/internal/confine.hpp"
#include "actors/guard/internal/usage.hpp"

namespace temper::actors {

/// Above what the guard and its command move to 0, 1, 2 and 3.
inline constexpr int kFirstHighFd = 10;

/// All prepared before the fork: between fork and exec nothing may allocate or lock. Descriptors
/// are 10 or above.
struct GuardPlan {
  const char* executable = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  int input = -1;  ///< Becomes the command's stdin, and so on.
  int output = -1;
  int errors = -1;
  int life_line = -1;
  int status = -1;
  ConfinePlan confine{};
};

/// Added to the wait status: what the guard killed the command for.
inline constexpr int kTookTooMuchMemory = 1 << 24;
inline constexpr int kStartedTooMany = 1 << 25;

/// Starts the command, waits until it ends or the life line closes, kills what is left and exits.
/// Where the command is confined, it also ends it once it and all that it started hold more memory
/// than plan.confine.memory, or are more than kMostProcesses: the kernel's limits are of each
/// process by itself. It looks every kUsagePeriod.
/// Writes to `status`: the number of confine_error() for the start, or its errno (0: it runs), then
/// the command's wait status.
/// Requires: called in a fresh fork, with every signal blocked.
[[noreturn]] void run_guard(const GuardPlan& plan);

}  // namespace temper::actors
