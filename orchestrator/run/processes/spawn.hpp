// Starts child processes and reads the end of their output. No threads, no event loop.
#pragma once

#include "orchestrator/run/processes/supervisor.hpp"

#include <sys/types.h>

namespace temper::orchestrator {

/// Starts a child in its own process group that dies with the calling thread, with stdin from
/// /dev/null and no other descriptor of ours. Returns after its program was executed. Errors: see
/// Supervisor::start.
Result<pid_t> spawn(const ChildSpec& spec);

/// The last lines, at most 64 KiB, of what `log` holds after `begin`; empty if unreadable.
std::string log_tail(const std::filesystem::path& log, std::int64_t begin);

}  // namespace temper::orchestrator
