// The driver of simulated runs, in virtual time. It asks each actor when it acts next and lets the
// earliest act; their messages become events and the scheduler's commands become messages, all at
// the virtual time. It decides nothing about the run.
//
// Order. Time stands still while an actor has mail: these actors take it, in the order of their
// ids, before any clock moves. Then the earliest next event happens; actors with the same one act
// in the order of their ids, before a deadline of that time. A hardware failure comes before what
// actors do at its time. So equal configurations give equal logs, whatever the host.
//
// Ends. A run ends with a Finish of the scheduler, as every run does. It also ends when an actor
// fails by itself (starting it again would only repeat the failure), and when no actor will act any
// more.
//
// A checkpoint consists of the trainer's word that it saved one and the scheduler's state: there
// are no payloads. It is kept in memory, or in the run folder if there is one.
#pragma once

#include "core/log.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/core/run_core.hpp"
#include "orchestrator/run/virtual/counted_work.hpp"
#include "orchestrator/run/virtual/simulated_fleet.hpp"
#include "orchestrator/run/virtual/simulated_hardware.hpp"

#include <filesystem>
#include <memory>

namespace temper::orchestrator {

struct VirtualOptions {
  ResolvedPipeline pipeline;
  std::filesystem::path log;  ///< events.log; empty: no log is written, and the run's hash is 0.
  /// The folder of checkpoints; empty: only the last one is kept, in memory.
  std::filesystem::path checkpoints;
  bool resume = false;  ///< Continues that log. Requires: prepare_resume() (run/resume.hpp).
  std::vector<SettingChange> changes{};  ///< Of the settings, on resume.
  /// How many times the user has asked to stop; called now and then. May be empty.
  std::function<int()> stops;
};

class VirtualDriver final : private RunCore::Driver {
 public:
  /// `content`: null where work is only counted. Errors: the log cannot be created; the hardware
  /// fails by plan and the host, or the content, cannot lose actors; the plan cannot be read.
  static Result<std::unique_ptr<VirtualDriver>> create(
      VirtualOptions options,
      std::unique_ptr<ActorHost> host,
      RunObserver observer,
      const Log& log,
      std::unique_ptr<ContentSource> content = nullptr);

  /// Runs until the scheduler finishes; then the host is stopped.
  RunOutcome run();

 private:
  struct Parts {
    std::unique_ptr<ActorHost> host;
    std::unique_ptr<ContentSource> content;
    std::optional<FaultPlan> plan;
    RunCoreOptions core;
  };
  VirtualDriver(VirtualOptions options, Parts parts, RunObserver observer, const Log& log);
  Status open();

  Time now() const override { return now_; }
  void execute(const Command& command) override { execute_with(command, hardware_, work_); }
  void end_actors() override { hardware_.end_actors(now_); }
  std::vector<ResponseId> restore(Checkpoint checkpoint) override;

  void turn();
  void look_up();
  void move_time();
  bool is_stuck();
  void take_all(const SimulatedFleet::Acted& acted);
  Status take(const ActorHost::Arrival& arrival);
  void finish_actors();

  const VirtualOptions options_;
  RunCore core_;
  SimulatedFleet fleet_;
  SimulatedHardware hardware_;
  CountedWork work_;
  Time now_{};
  std::uint64_t turns_ = 0;
  std::uint64_t turns_at_now_ = 0;  ///< Turns since time last moved.
  int stops_ = 0;                   ///< Requests to stop that were passed on.
};

}  // namespace temper::orchestrator
