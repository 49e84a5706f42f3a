// The driver of runs on the wall clock: real processes over ZeroMQ. Its parts turn messages, exits
// and timers into events, and execute the scheduler's commands. It decides nothing about the run.
//
// One thread runs everything here, in one Asio loop. Every failure ends in one of three ways: an
// event (an actor was lost), a rollback to the last checkpoint, or the end of the run with a
// reason.
#pragma once

#include "core/clock.hpp"
#include "orchestrator/run/core/run_core.hpp"
#include "orchestrator/run/live/actor_links.hpp"
#include "orchestrator/run/live/actor_messages.hpp"
#include "orchestrator/run/live/fault_injection.hpp"
#include "orchestrator/run/live/live_options.hpp"
#include "orchestrator/run/live/live_workers.hpp"
#include "orchestrator/run/live/scale_control.hpp"
#include "orchestrator/run/live/weight_sync.hpp"
#include "orchestrator/run/live/work_exchange.hpp"
#include "orchestrator/run/live/worker_admission.hpp"
#include "orchestrator/run/live/worker_clocks.hpp"

#include <memory>
#include <optional>
#include <string>

namespace temper::orchestrator {

class LiveDriver final : private RunCore::Driver {
 public:
  /// Requires: of a run to be resumed, prepare_resume() has repaired the folder. Errors: the run
  /// folder or the socket cannot be created; no checkpoint can be restored.
  static Result<std::unique_ptr<LiveDriver>> create(LiveOptions options,
                                                    RunObserver observer,
                                                    const Log& log);
  ~LiveDriver() override;

  /// Runs until the scheduler finishes and every actor has ended.
  RunOutcome run();

 private:
  struct Loop;  ///< Asio's objects.
  LiveDriver(LiveOptions options,
             RunObserver observer,
             LaunchCredentials credentials,
             const Log& log);
  Status open(std::optional<KeyRing> ring);
  Status bind_socket();
  Status plan_faults();

  Time now() const override { return clock_.now(); }
  void execute(const Command& command) override {
    execute_with(command, workers_, work_, weights_, links_);
  }
  std::map<GroupId, GroupPayload> payloads() const override { return work_.payloads(); }
  void end_actors() override { workers_.end_all(); }
  std::vector<ResponseId> restore(Checkpoint checkpoint) override;
  void on_settled() override;
  void on_finish() override;

  void arm_deadline();
  void on_tick();
  void watch();
  void on_signal(int number);

  const LiveOptions options_;
  const Log log_;
  std::unique_ptr<Loop> loop_;
  RealClock clock_;
  RunCore core_;
  FaultInjection faults_;
  ActorLinks links_;
  WorkExchange work_;
  WeightSync weights_;
  WorkerClocks clocks_;
  WorkerAdmission admission_;
  LiveWorkers workers_;
  ActorMessages messages_;
  ScaleControl scaling_;
  bool out_of_time_ = false;  ///< The last signal was SIGUSR1.
};

}  // namespace temper::orchestrator
