// Replays recorded events with a fresh scheduler and compares its commands, byte by byte.
#pragma once

#include "orchestrator/record/event_log.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <map>
#include <memory>
#include <string>

namespace temper::orchestrator {

class Scheduler;

class Replay {
 public:
  Replay();
  ~Replay();
  /// Error: the scheduler gives other commands than recorded. Names the record, and has the first
  /// command that differs as JSON, recorded and replayed.
  Status feed(const Record& record);

  std::uint64_t events() const { return events_; }
  std::uint64_t commands() const { return commands_; }
  const Scheduler& scheduler() const { return *scheduler_; }

 private:
  std::unique_ptr<Scheduler> scheduler_;
  SchedulerConfig config_;
  std::map<std::uint64_t, std::string> snapshots_;  ///< By sequence of Started and CheckpointSaved.
  std::uint64_t events_ = 0;
  std::uint64_t commands_ = 0;
};

}  // namespace temper::orchestrator
