// A program that works for a while and ends by itself, such as `temper-worker pretrain`.
#pragma once

#include "orchestrator/run/processes/supervisor.hpp"

#include <functional>
#include <string_view>

namespace temper::orchestrator {

/// Runs the program to its end. `what` names it in errors.
/// `on_progress` gets its last line of output five times a second; null: nobody does.
/// `stopped` ends it when it returns true, as SIGINT, SIGTERM, SIGUSR1 and SIGHUP do; null: never.
/// Errors: it could not be started, it failed (with its last line; Unsupported for the exit code
/// kPermanentExit, otherwise Internal), it was stopped (Unavailable).
Status run_program(const ChildSpec& spec,
                   std::string_view what,
                   const std::function<void(std::string_view)>& on_progress,
                   const std::function<bool()>& stopped = nullptr);

}  // namespace temper::orchestrator
