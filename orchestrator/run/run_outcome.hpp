// How a run ended, and who watches it: the same for every driver.
#pragma once

#include "orchestrator/record/event_log.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <functional>

namespace temper::orchestrator {

struct RunOutcome {
  command::Finish finish;
  Time wall{};  ///< When the run finished, on its clock.
  std::uint64_t log_hash = 0;
};

/// Sees every record as it is written, and is called a few times a second in between.
struct RunObserver {
  std::function<void(const Record&)> on_record;
  std::function<void(const Scheduler&, Time)> on_tick;
};

}  // namespace temper::orchestrator
