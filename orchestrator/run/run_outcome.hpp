// How a run ended, and who watches it: the same for every driver.
#pragma once

#include "actors/task/tokenizer.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/run/payload_store.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <functional>

namespace temper::orchestrator {

struct RunOutcome {
  RunEnd finish;
  Time wall{};  ///< When the run finished, on its clock.
  std::uint64_t log_hash = 0;
  /// Stopped because its time is up (SIGUSR1): who started it starts it again.
  bool out_of_time = false;
};

/// A group that is not spoken of again, with what was generated for it.
struct ReleasedGroup {
  const command::Release& release;
  const GroupPayload& payload;
  const actors::Tokenizer& tokenizer;
};

/// Sees every record as it is written, the text of every group that is done with (where there is
/// text), and is called a few times a second in between.
struct RunObserver {
  std::function<void(const Record&)> on_record;
  std::function<void(const ReleasedGroup&)> on_release;
  std::function<void(const Scheduler&, Time)> on_tick;
};

}  // namespace temper::orchestrator
