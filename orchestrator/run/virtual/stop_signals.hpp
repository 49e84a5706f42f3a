// The signals that stop a run, for a loop that never waits: they are counted, and the loop asks.
#pragma once

#include <memory>

namespace temper::orchestrator {

class StopSignals {
 public:
  /// From now on SIGINT, SIGTERM, SIGUSR1 and, unless it is ignored, SIGHUP are counted here.
  StopSignals();
  ~StopSignals();
  /// How many have come so far. Cheap enough for every few hundred events.
  int count();
  /// The last of them was SIGUSR1: the time limit is near.
  bool out_of_time() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
