// The part of a run that every driver shares: the event queue, the scheduler, the event log, the
// observers, checkpoints, rollback and resume. A driver supplies the clock, turns messages into
// events, and executes commands.
//
// RunCore delivers one event at a time, always in this order:
//   1. The scheduler handles the event.
//   2. The record is appended to the log. A Resumed is synced, because files that derive from the
//      log are cut back to it.
//   3. If the event is a saved checkpoint, the log is synced and the checkpoint is completed.
//   4. The observers see the record.
//   5. The commands are executed in their order. Events that they cause wait in the queue.
// An observer therefore never sees a record that the log lacks, nor a checkpoint from which the run
// cannot be resumed. If a record cannot be appended, its commands are not executed and the run
// ends.
//
// One thread.
#pragma once

#include "core/log.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/run/core/checkpoint_keeper.hpp"
#include "orchestrator/run/run_outcome.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

#include <algorithm>
#include <concepts>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

class Scheduler;

struct RunCoreOptions {
  SchedulerConfig config;
  CheckpointKeeper checkpoints = CheckpointKeeper::none();
  std::filesystem::path log{};  ///< events.log; empty: no log is written, and its hash is 0.
  LogWriting writing{};
  /// Whether the run rolls back when its trainer is lost. Otherwise it ends.
  bool rolls_back = true;
  bool resume = false;                   ///< Requires: prepare_resume() (run/resume.hpp).
  std::vector<SettingChange> changes{};  ///< Of the settings, on resume.
};

/// The commands that RunCore executes itself.
template <class C>
concept ExecutedByCore = std::same_as<C, command::Evaluated> || std::same_as<C, command::Waiting> ||
    std::same_as<C, command::Rollback> || std::same_as<C, command::Finish>;

class RunCore {
 public:
  /// What a driver does for its run.
  class Driver {
   public:
    virtual ~Driver() = default;
    virtual Time now() const = 0;
    /// Executes a command that is not ExecutedByCore.
    virtual void execute(const Command& command) = 0;
    /// The payloads that a checkpoint stores.
    virtual std::map<GroupId, GroupPayload> payloads() const { return {}; }
    /// Ends all actors, before a rollback.
    virtual void end_actors() = 0;
    /// The run continues from this checkpoint (its folder is empty if that is the start of the run,
    /// or if it is kept in memory). The scheduler has returned to it. Returns the generated
    /// responses whose payloads no longer exist.
    virtual std::vector<ResponseId> restore(Checkpoint checkpoint) = 0;
    /// The queue is empty.
    virtual void on_settled() {}
    /// The run is over; outcome() says how.
    virtual void on_finish() {}
  };

  /// `driver` outlives this.
  RunCore(RunCoreOptions options, Driver& driver, RunObserver observer, const Log& log);
  ~RunCore();

  /// Creates the log, or on resume reads it for the observers and restores the last checkpoint.
  /// Errors: those of EventLog::create(), or on resume of scan_event_log(), EventLog::reopen(),
  /// CheckpointKeeper::roll_back() and Scheduler::restored().
  Status open();
  /// Posts the first event. Requires: open().
  void begin();

  /// Adds an event and delivers all that wait, unless a delivery is under way, which then delivers
  /// this one too.
  void post(Event event);
  /// Adds an event for the next process().
  void enqueue(Event event) { queue_.push_back(std::move(event)); }
  void process();

  /// The user asks to stop: in order the first time, at once the second time.
  void request_stop();
  std::int32_t stop_requests() const { return stop_requests_; }
  /// The run cannot continue for a reason outside the scheduler (for example a full disk).
  void fail(std::string reason);

  /// Whether the actor may send a message of this type now. Error: a protocol violation.
  Status validate(ActorId sender, std::uint32_t tag) const;
  /// Whether an actor's claims, as an event, hold now. Error: a protocol violation.
  Status validate(const Event& said) const;

  /// The folder that the trainer saves into; empty unless checkpoints are kept in a folder. Error:
  /// Io if it cannot be created.
  Result<std::filesystem::path> begin_checkpoint(PolicyVersion version) const {
    return options_.checkpoints.begin(version);
  }
  /// Error: events.log was removed while the run writes to it.
  Status check_log() const { return events_.check_named(); }
  void tick() const;
  const RunObserver& observer() const { return observer_; }

  /// Syncs the log. Requires: the run is over.
  RunOutcome close();

  /// The driver's time, but not before the last record.
  Time now() const { return std::max(driver_.now(), events_.last_time()); }
  Time last_time() const { return events_.last_time(); }
  /// What the scheduler knows. Valid until the next event.
  const RunState& state() const;
  /// Scheduler::next_deadline().
  std::optional<Time> next_deadline() const;
  /// Scheduler::wants_to_know_that_loads().
  bool wants_to_know_that_loads(ActorId actor) const;
  /// With the actors that the run has now.
  const SchedulerConfig& config() const { return options_.config; }
  const ActorSpec& actor(ActorId id) const { return options_.config.actors[id.value()]; }
  /// To be followed by a Scaled.
  void set_actors(std::vector<ActorSpec> actors) { options_.config.actors = std::move(actors); }
  bool finished() const { return outcome_.has_value(); }
  /// Requires: finished().
  const RunOutcome& outcome() const { return *outcome_; }
  std::string text(const std::optional<Reason>& reason) const {
    return sentence(reason, options_.config.actors);
  }

 private:
  Status open_resumed();
  void deliver(Event event);
  void complete_checkpoint(std::uint64_t sequence, PolicyVersion version);
  void abort_unrecorded(Record record, const std::string& reason);
  void execute(const Command& command);
  void roll_back(const Reason& reason);
  /// Returns the responses that are to be generated again.
  Result<std::vector<ResponseId>> return_to_checkpoint();

  RunCoreOptions options_;
  Driver& driver_;
  const RunObserver observer_;
  const Log log_;
  EventLog events_;
  std::unique_ptr<Scheduler> scheduler_;
  std::deque<Event> queue_;
  bool delivering_ = false;
  event::Resumed resumed_;                 ///< The first event of a resumed run.
  std::uint64_t checkpoint_sequence_ = 0;  ///< The record of the checkpoint to roll back to.
  std::int32_t rollbacks_ = 0;             ///< Since that checkpoint was saved.
  std::int32_t stop_requests_ = 0;
  std::optional<RunOutcome> outcome_;
};

template <class Part, class C>
concept Executes = requires(Part& part, const C& command) {
  part.execute(command);
};

/// Executes a command with the part of a driver that has an execute() for it: exactly one has.
template <class... Parts>
void execute_with(const Command& command, Parts&... parts) {
  const auto offer = [](auto& part, const auto& c) {
    if constexpr (Executes<decltype(part), decltype(c)>)
      part.execute(c);
  };
  const auto run = [&]<class C>(const C& c) {
    if constexpr (!ExecutedByCore<C>) {
      static_assert((int{Executes<Parts, C>} + ...) == 1);
      (offer(parts, c), ...);
    }
  };
  std::visit(run, command);
}

}  // namespace temper::orchestrator
