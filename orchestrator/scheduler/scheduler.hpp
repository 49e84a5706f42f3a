// The scheduler: what happens next in a run. A pure, deterministic state machine: it touches no
// socket, clock, thread or file. Whatever happens enters as an event with its time; whatever it
// wants leaves as commands. The same events give the same commands, which is how a run is replayed.
//
// After each event it moves everything that can move, always in this order: expired deadlines,
// launches that waited, evaluation, checkpoint or end, whose turn it is on shared cards, training,
// weight publication, dispatch, migration, reference and reward, waits. Every wait has a deadline,
// kept by the fleet (launch, weights, switch), by the queue (leases) or here (checkpoint, drain);
// next_deadline() is the earliest.
#pragma once

#include "actors/protocol/permissions.hpp"
#include "orchestrator/scheduler/sharing/card_shares.hpp"
#include "orchestrator/scheduler/state/commands.hpp"
#include "orchestrator/scheduler/state/evaluation.hpp"
#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/fleet.hpp"
#include "orchestrator/scheduler/dispatch/just_in_time.hpp"
#include "orchestrator/scheduler/sharing/lending.hpp"
#include "orchestrator/scheduler/dispatch/length_forecast.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"
#include "orchestrator/scheduler/sharing/role_switch.hpp"
#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

/// What an actor said that cannot be.
struct Lie {
  actors::Claim claim = actors::Claim::LeaseIsItsOwn;
  std::string what;
};

/// How far a run is, for views and for the end of a run.
struct Progress {
  PolicyVersion version;  ///< Completed updates = the published version.
  std::uint64_t groups_dispatched = 0;
  std::uint64_t groups_trained = 0;
  std::uint64_t groups_failed = 0;
  std::uint64_t groups_evicted = 0;
  std::uint64_t responses_failed = 0;
  std::uint64_t groups_filtered = 0;
};

class Scheduler {
 public:
  /// Requires: the first event is Started; then time never goes back.
  Commands on(const Event& event, Time now);
  /// When on(DeadlineReached) is due if nothing else happens.
  std::optional<Time> next_deadline() const;

  // scheduler_claims.cpp: what actors say is held against what they may say now, before it becomes
  // an event (actors/protocol/permissions.hpp). Only what passes both may go to on().
  actors::Stage stage_of(ActorId actor) const;
  bool may_say(ActorId actor, std::uint32_t tag) const;
  /// The first claim of an event, as an actor's message was understood, that cannot be; none: it
  /// can. `now`: when it was received.
  std::optional<Lie> find_lie(const Event& said, Time now) const;
  /// The same of one response that an engine reports.
  std::optional<Lie> find_lie(ActorId engine, const event::Generated::Item& item) const;

  /// All that outlives a checkpoint: queue, rule, counters. Leases and actors do not.
  std::string snapshot() const;
  /// A scheduler as it was when the snapshot was taken (empty: at the start of the run), without
  /// actors or leases. To be followed by on(Resumed).
  static Result<Scheduler> restored(const SchedulerConfig& config, std::string_view snapshot);

  const SchedulerConfig& config() const { return config_; }
  const Progress& progress() const { return stored_.progress; }
  const DistQueue& queue() const { return stored_.queue; }
  /// The table that grants this lease: that of training, or that of the evaluation under way.
  const DistQueue& table_of(LeaseId lease) const;
  const Evaluation& evaluation() const { return evaluation_; }
  /// What the actor has been given and not answered, of both.
  Load load_of(ActorId actor) const;
  const Fleet& fleet() const { return fleet_; }
  /// Whether to post ActorLoading: the actor starts, its deadline is near enough to be worth a
  /// record, and can be put off.
  bool wants_to_know_that_loads(ActorId actor, Time now) const;
  SwitchPhase phase() const { return switch_.phase(); }
  bool finished() const { return finished_; }

 private:
  struct SavedState {
    Progress progress;
    std::uint64_t next_group = 0;
    DistQueue queue;
    OutstandingGroups standing;
    std::uint64_t filtered_since_update = 0;
    std::uint64_t failed_since_update = 0;
    std::optional<PolicyVersion> evaluated;  ///< The last one.
    std::optional<double> best;              ///< Highest pass_1 so far.
  };
  template <class V>
  friend void describe(V& v, SavedState& s);

  void handle(const event::Started& e);
  void handle(const event::Resumed& e);
  void handle(const event::ActorReady& e);
  void handle(const event::ActorDown& e);
  void handle(const event::ActorLoading& e);
  void handle(const event::Generated& e);
  void handle(const event::ReferenceScored& e);
  void handle(const event::Judged& e);
  void handle(const event::Trained& e);
  void handle(const event::Prepared& e);
  void handle(const event::WeightsStaged& e);
  void handle(const event::WeightsCommitted& e);
  void handle(const event::Switched& e);
  void handle(const event::CheckpointSaved& e);
  void handle(const event::Activity& e);
  void handle(const event::DeadlineReached&) {}
  void handle(const event::ClockRead&) {}
  void handle(const event::WorkerAttached&) {}
  void handle(const event::Scaled& e);
  void handle(const event::StopRequested& e);
  void handle(const event::Aborted& e) {
    finish(e.stopped ? Ending::Stopped : Ending::Failed,
           reason_with(ReasonKind::Aborted, e.reason));
  }

  void configure(const SchedulerConfig& config);
  std::int64_t credits() const;
  enum class Ending { Complete, Failed, Stopped };
  /// `last`: the last of the losses or failures that the reason counts.
  void finish(Ending how, std::optional<Reason> reason = {}, std::optional<Reason> last = {});

  // scheduler_restarts.cpp
  void launch_all();
  void start_waiting();
  Duration start_limit(ActorId actor) const;
  void launch(ActorId actor, std::optional<Reason> reason = {});
  Time latest_start(ActorId actor) const;
  bool is_first_start(ActorId actor) const;
  void wait_on(ActorId attached);
  void lose(ActorId actor, Reason reason);
  void lose_trainer(Reason reason);
  void forgive_restarts();

  // scheduler_scale.cpp: another number of actors while the run goes on
  void bring(ActorId actor);
  void take_away(ActorId actor);
  void retire();

  void recount_age(GroupId group);
  void fail_response(ResponseId response, Reason why);
  /// `last`: why the last of its responses that failed did.
  void settle_failures(GroupId group, Reason last);
  void filter(GroupId group);
  void evict();
  void release(GroupId group, Outcome outcome, std::optional<Reason> reason = {});

  // scheduler_claims.cpp
  template <class E>
  std::optional<Lie> lie_in(const E&) const {
    return std::nullopt;
  }
  std::optional<Lie> lie_in(const event::Generated& e) const;
  std::optional<Lie> lie_in(const event::ReferenceScored& e) const;
  std::optional<Lie> lie_in(const event::Judged& e) const;
  std::optional<Lie> lie_in(const event::Trained& e) const;
  std::optional<Lie> lie_in(const event::Prepared& e) const;
  std::optional<Lie> lie_in(const event::WeightsStaged& e) const;
  std::optional<Lie> lie_in(const event::WeightsCommitted& e) const;
  std::optional<Lie> lie_in(const event::Switched& e) const;
  std::optional<Lie> lie_in(const event::CheckpointSaved& e) const;
  std::optional<Lie> lie_about_lease(LeaseId lease, ActorId actor, Task task) const;
  std::optional<Lie> lie_about_versions(const event::Generated::Item& item, ActorId actor) const;

  // scheduler_moves.cpp
  Reason passed(const Overdue& missed) const;
  Reason passed(const Lease& lease) const;
  void expire();
  void publish_weights();
  void train();
  void prepare();
  std::int64_t least_to_prepare() const;
  void note_trainable(GroupId group);
  void dispatch();
  bool dispatch_returned();
  bool dispatch_new();
  void send(ActorId engine, GroupId group, std::vector<ResponseId> responses);
  void score(Task task, actors::RoleKind role, Duration deadline);
  bool may_score(ActorId actor) const;
  void checkpoint_or_end();

  // scheduler_evaluation.cpp
  bool evaluation_is_due_at(PolicyVersion version) const;
  bool evaluation_has_the_cards() const;
  bool evaluation_holds_up_training() const;
  void evaluate();
  void give_up_evaluation();
  bool anyone_may_have(PolicyVersion version) const;
  void evaluate_anew();
  PolicyVersion wanted_version(ActorId engine) const;
  void dispatch_evaluation();
  std::optional<ActorId> engine_to_evaluate(std::int32_t responses) const;
  void judge_evaluation();
  void take_evaluated(ActorId actor, const event::Generated::Item& item);
  void take_evaluated(const event::Judged& e);

  // scheduler_turns.cpp
  void drive_switch();
  void change_turns();
  void score_turn();
  void advance_switch();
  bool rollout_is_due() const;
  bool training_is_due() const;
  bool lent_cards_idle() const;
  void spread_load();
  void call_references();
  bool rollout_has_run_dry() const;

  // scheduler_shares.cpp: engines that give up their cards one by one
  bool one_by_one() const { return config_.switching == Switching::OneByOne; }
  void change_shares();
  std::vector<ActorId> who_leaves(std::int32_t share) const;
  std::int32_t share_due() const;
  bool worth_spreading() const;
  bool crowded() const;
  bool scores_before_more() const;
  bool nobody_generates() const;
  std::int64_t responses_to_generate() const;
  std::int64_t may_promise_once_scored() const;

  // scheduler_stragglers.cpp
  std::int64_t even_share() const;
  std::optional<PolicyVersion> urgent() const;
  void migrate();
  std::vector<ResponseId> longest_generating(ActorId engine, PolicyVersion newest) const;
  std::size_t full_batch(Task task) const;

  // scheduler_waits.cpp
  void update_waits();
  command::Waiting wait_of(ActorId actor) const;
  WaitCause missing_for_training() const;

  bool draining() const {
    return stop_requested_ || stored_.progress.version.value() >= config_.steps;
  }
  std::optional<std::vector<GroupId>> select_batch() const;
  /// Something is to be scored by references that take turns.
  bool waits_for_scores() const;
  /// Whether a batch could be trained once they have.
  bool scoring_makes_a_batch() const;
  enum class Work { New, Returned };
  std::optional<ActorId> engine_for(Work work, std::size_t responses, PolicyVersion at_least) const;
  bool may_wait();
  bool wants_groups() const;
  bool can_admit() const;
  std::uint64_t groups_still_needed() const;
  template <class C>
  void emit(C command) {
    out_.emplace_back(std::move(command));
  }

  SchedulerConfig config_;
  std::unique_ptr<StalenessRule> policy_ = make_staleness_rule(StalenessRuleKind::Exact);
  SavedState stored_;
  Fleet fleet_;
  RoleSwitch switch_;
  Lending lending_;
  LengthForecast forecast_;
  JustInTime just_in_time_;
  Evaluation evaluation_;
  std::vector<LeaseId> judging_;  ///< Leases of the evaluation at verifiers.
  CardShares shares_;
  std::optional<Time>
      held_until_;  ///< just_in_time: a group that the rule admits waits until then.
  std::set<ResponseId> withdrawn_;  ///< Asked back from their engines, not here yet.
  Time now_{};

  std::optional<LeaseId> training_;   ///< The update under way.
  std::vector<GroupId> batch_;        ///< Its groups.
  std::vector<LeaseId> prepared_;     ///< Groups of the next update whose gradients were asked for.
  std::optional<LeaseId> preparing_;  ///< The last of them, while they are computed.
  std::optional<Time> saving_;        ///< A checkpoint under way: its deadline.
  std::optional<PolicyVersion> saved_;  ///< Version of the last checkpoint.
  std::optional<Time> drain_deadline_;
  bool stop_requested_ = false;
  bool rewarded_ = false;  ///< A response of this run has been given a reward.
  bool finished_ = false;
  std::int32_t rollbacks_ = 0;
  Commands out_;
};

}  // namespace temper::orchestrator
