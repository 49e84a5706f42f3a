// A program that works for a while and ends by itself, such as `temper-worker pretrain`.
#pragma once

#include "orchestrator/run/processes/supervisor.hpp"

#include <functional>
#include <string_view>

namespace temper::orchestrator {

/// Runs it to its end, with its last line of output every now and then. `what` names it in errors:
/// it could not be started, it failed (with its last line), the user stopped it.
Status run_program(const ChildSpec& spec,
                   std::string_view what,
                   const std::function<void(std::string_view)>& on_progress);

}  // namespace temper::orchestrator
