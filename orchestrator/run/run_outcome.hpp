// The outcome of a run, and its observers: the same for every driver.
#pragma once

#include "actors/task/tokenizer.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/run/payload_store.hpp"

#include <functional>

namespace temper::orchestrator {

struct RunTick;

struct RunOutcome {
  RunEnd finish;
  Time wall{};  ///< When the run finished, on its clock.
  std::uint64_t log_hash = 0;
  /// Stopped by SIGUSR1 before the time limit; the launcher resubmits it.
  bool out_of_time = false;
};

/// A group that has left the queue, with the responses that were generated for it.
struct ReleasedGroup {
  const command::Release& release;
  const GroupPayload& payload;
  const actors::Tokenizer& tokenizer;
};

/// Sees every record once it is in the log, and every group that leaves the queue, with its text if
/// there is text. on_tick is called a few times per second in between.
struct RunObserver {
  std::function<void(const Record&)> on_record;
  std::function<void(const ReleasedGroup&)> on_release;
  std::function<void(const RunTick&)> on_tick;
};

}  // namespace temper::orchestrator
