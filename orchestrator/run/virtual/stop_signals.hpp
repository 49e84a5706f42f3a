// Ctrl-C for a loop that never waits: signals are counted, and the loop asks.
#pragma once

#include <memory>

namespace temper::orchestrator {

class StopSignals {
 public:
  /// From now on SIGINT and SIGTERM (and SIGHUP, unless it is ignored) are counted here.
  StopSignals();
  ~StopSignals();
  /// How many have come so far. Cheap enough for every few hundred events.
  int count();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
