// The signals that stop a run, for the whole life of its process (docs/reference/exit-codes.md).
//
//   SIGINT, SIGTERM  finish the current step and save a checkpoint; a second one stops at once
//   SIGHUP           the same, unless the process ignores it (nohup); a second one has no effect
//   SIGUSR1          the time limit is near: the same, but the run ends with success
//
// A driver handles them while it runs. Before that there is nothing to finish, so the process ends
// at once and leaves the same state as a start that was killed.
#pragma once

#include <functional>
#include <memory>

namespace temper::orchestrator {

class RunSignals {
 public:
  /// Startup: this object calls `end` with the signal, on a thread of its own.
  /// Child: a child process that this process waits for must be stopped first; see has_come().
  /// Run: the driver has its own handlers.
  enum class Phase { Startup, Child, Run };

  /// Handles signals from here on, in phase Startup. `end` must end the process.
  explicit RunSignals(std::function<void(int signal)> end);
  ~RunSignals();

  /// Calls `end` when Startup is entered, if a signal came in phase Child.
  void enter(Phase phase);
  bool has_come() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
