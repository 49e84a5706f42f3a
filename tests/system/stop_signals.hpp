// The signals that stop a run.
#pragma once

#include <signal.h>

#include <array>

namespace temper::test {

/// With the exit code that docs/reference/exit-codes.md has for it.
struct StopSignal {
  int signal;
  int status;
};
inline constexpr std::array<StopSignal, 4> kStops{
    {{SIGINT, 130}, {SIGTERM, 130}, {SIGHUP, 130}, {SIGUSR1, 0}}};

}  // namespace temper::test
