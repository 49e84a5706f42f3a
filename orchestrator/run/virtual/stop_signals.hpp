// Counts the signals that stop a run, for a loop that polls.
#pragma once

#include <memory>

namespace temper::orchestrator {

class StopSignals {
 public:
  /// From now on SIGINT, SIGTERM, SIGUSR1 and, unless it is ignored, SIGHUP are counted here.
  StopSignals();
  ~StopSignals();
  /// The number of signals so far. Cheap enough for every few hundred events.
  int count();
  /// The last of them was SIGUSR1: the time limit is near.
  bool out_of_time() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
