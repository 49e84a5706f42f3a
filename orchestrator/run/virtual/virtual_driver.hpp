// The driver of virtual time: actors on simulated hardware, wherever their host keeps them. It asks
// each actor when it acts next, advances the earliest, turns what they say into events of the
// scheduler and its commands into messages, all stamped with the virtual time. It decides nothing
// about the run.
//
// Order. Time stands still while anyone has something to take: actors that were given messages take
// them, in the order of their ids, before any clock moves. Then the earliest next event comes;
// actors with the same one act in the order of their ids, before a deadline of that time. So equal
// configurations give equal logs, whatever the host.
//
// Ends. As every run with a Finish of the scheduler. Besides: an actor that fails by itself ends
// the run (to start it again would only repeat it), and so does a state in which nobody will act
// any more.
//
// Failures. Where simulation.faults has any, hardware fails by its plan (fault_plan.hpp): the
// actors on the cards that stop are lost, as a driver on the wall clock loses processes, and what
// the scheduler launches again starts once all of its cards can be used. A lost trainer returns the
// run to its last checkpoint. Who stands still (and, where processes are modelled, who is cut off)
// is lost after transport.heartbeat_timeout. What fails at a time comes before what actors do at
// that time.
//
// Lengths come from the scheduler's own queue: there is no payload. A checkpoint is the trainer's
// word that it saved one and the state of the scheduler; it is kept, and with a run folder written.
//
// Content. With a content source (content.hpp) the same commands go to it too; when an actor says
// that it has judged or trained, the source says what came of it: rewards, and the metrics of the
// update but for its tokens and passes, which are the simulated ones. Times, lengths and order are
// as without it. It is asked for nothing that a command has not ordered before.
#pragma once

#include "core/log.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/checkpoints.hpp"
#include "orchestrator/run/fault_plan.hpp"
#include "orchestrator/run/run_outcome.hpp"
#include "orchestrator/run/virtual/actor_host.hpp"
#include "orchestrator/run/virtual/content.hpp"
#include "sim_hw/events/event_queue.hpp"

#include <deque>
#include <filesystem>
#include <memory>

namespace temper::orchestrator {

struct VirtualOptions {
  ResolvedPipeline pipeline;
  std::filesystem::path log;  ///< events.log; empty: none is kept, and the hash of the run is 0.
  /// The folder of checkpoints; empty: only the last one is kept, in memory.
  std::filesystem::path checkpoints;
  bool resume = false;  ///< Goes on with that log. Requires: prepare_resume() (run/resume.hpp).
  std::vector<SettingChange> changes{};  ///< Of the settings, where it is resumed.
  /// How many times the user has asked to stop; asked now and then. May be empty.
  std::function<int()> stops;
};

class VirtualDriver {
 public:
  /// `content`: null where work is only counted. Errors: the log cannot be made; hardware is to
  /// fail whose host, or content, cannot lose actors; what fails cannot be read.
  static Result<std::unique_ptr<VirtualDriver>> create(
      VirtualOptions options,
      std::unique_ptr<ActorHost> host,
      RunObserver observer,
      const Log& log,
      std::unique_ptr<ContentSource> content = nullptr);

  /// Runs until the scheduler finishes; then the host is stopped.
  RunOutcome run();

 private:
  VirtualDriver(VirtualOptions options,
                std::unique_ptr<ActorHost> host,
                RunObserver observer,
                const Log& log);

  Status open();
  Status open_resumed();
  void turn();
  void look_up();
  void move_time();
  void let_act();
  void address(ActorId actor);

  // virtual_faults.cpp
  Status plan_faults();
  std::optional<Time> next_change() const;
  void change_hardware();
  void fail(const Fault& fault);
  void hinder(const Fault& fault);
  void give_up_silent();
  void lose_to(const std::vector<ActorId>& lost, const std::string& why);
  void lose(ActorId actor);
  Status start_actor(ActorId actor);
  void keep_checkpoint(const Record& record, PolicyVersion version);
  Status write_checkpoint();
  void go_back();
  void say_goodbye();
  std::string who_waits() const;

  void post(Event event);
  void deliver(Event event);
  Status take(const ActorHost::Arrival& arrival);
  Result<std::optional<Event>> to_event(ActorId actor, const actors::IncomingMessage& message);
  Result<std::optional<Event>> to_judged(ActorId actor, actors::Judged message);
  Result<std::optional<Event>> to_trained(ActorId actor, actors::Trained message);
  /// The run ends if the content source reports an error.
  void follow(const Status& status);

  template <class M>
  void send(ActorId actor, M message);
  void execute(const command::Launch& c);
  void execute(const command::Discard& c);
  void execute(const command::Dispatch& c);
  void execute(const command::Cancel& c);
  void execute(const command::Withdraw& c);
  void execute(const command::ScoreReference& c);
  void execute(const command::Judge& c);
  void execute(const command::Train& c);
  void execute(const command::Prepare& c);
  actors::CountedTrain::Item item_of(ResponseId r) const;
  void execute(const command::StageWeights& c);
  void execute(const command::CommitWeights& c);
  void execute(const command::Switch& c);
  void execute(const command::SaveCheckpoint& c);
  void execute(const command::Release& c);
  void execute(const command::Evaluated&) {}
  void execute(const command::Retire&) {}  // nobody asks a simulated run for other actors
  void execute(const command::Waiting&) {}
  void execute(const command::Rollback& c);
  void execute(const command::Finish& c);

  struct Hardware {
    FaultPlan plan;
    HostPool hosts;
  };

  Tokens length_of(ResponseId r) const;
  void give_up(ActorId actor, const std::optional<Reason>& reason);
  /// A reason in words.
  std::string text(const std::optional<Reason>& reason) const {
    return sentence(reason, scheduler_config_.actors);
  }
  void abort(std::string reason);

  const VirtualOptions options_;
  const RunObserver observer_;
  const Log log_;
  const SchedulerConfig scheduler_config_;

  std::unique_ptr<ActorHost> host_;
  std::unique_ptr<ContentSource> content_;  ///< May be null.
  EventLog events_;
  Scheduler scheduler_;
  Time now_{};
  std::uint64_t turns_ = 0;
  std::uint64_t turns_at_now_ = 0;  ///< Turns since time last moved.
  int stops_ = 0;                   ///< Answered so far.
  std::deque<Event> queue_;         ///< Events that commands made.
  bool delivering_ = false;
  sim_hw::EventQueue next_events_;  ///< Of the actors, by id.
  std::vector<ActorId> addressed_;  ///< Actors that have something to take; has_mail_ of each.
  std::vector<bool> has_mail_;
  std::vector<ActorId> acting_;
  std::vector<bool> launched_;
  std::map<PolicyVersion, actors::WeightsHandle> weights_;  ///< The last few.
  std::optional<Hardware> hardware_;                        ///< None: nothing fails.
  std::map<ActorId, Time> waits_for_cards_;                 ///< Launched, from then on.
  std::map<ActorId, Time> silent_from_;                     ///< Given up when it is that long.
  event::Resumed resumed_;      ///< What a run that is resumed begins with.
  CheckpointState checkpoint_;  ///< Where the run would go back to.
  std::int32_t rollbacks_ = 0;  ///< In a row.
  std::optional<RunOutcome> outcome_;
};

}  // namespace temper::orchestrator
