// The signals that stop a run, for the whole life of its process (docs/exit_codes.md).
//
//   SIGINT, SIGTERM  finish the update under way and save a checkpoint; again: stop at once
//   SIGHUP           the same, unless the process ignores it (nohup); again: no effect
//   SIGUSR1          the time limit is near: the same, but the run ends with success
//
// A driver handles them while it runs. Before that nothing is under way that could be finished, and
// the process ends at once; what it leaves is what a killed start leaves.
#pragma once

#include <functional>
#include <memory>

namespace temper::orchestrator {

class RunSignals {
 public:
  /// Startup: `end` is called, with the signal, on a thread of this object.
  /// Child: a program that this process waits for is stopped first; see has_come().
  /// Run: the driver has its own handlers.
  enum class Phase { Startup, Child, Run };

  /// Signals are handled from here on, in phase Startup. `end` ends the process.
  explicit RunSignals(std::function<void(int signal)> end);
  ~RunSignals();

  /// Calls `end` if a signal has come in phase Child, and Startup is entered.
  void enter(Phase phase);
  bool has_come() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
