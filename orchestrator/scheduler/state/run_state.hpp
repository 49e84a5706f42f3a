// What the parts of the scheduler share: the configuration, what a checkpoint stores, the actors,
// the trainer's work, and the commands of the event at hand. The member functions are questions
// that more than one part asks, and the few changes that more than one part makes.
#pragma once

#include "orchestrator/scheduler/problems/problem_sampler.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"
#include "orchestrator/scheduler/staleness/staleness_rule.hpp"
#include "orchestrator/scheduler/state/commands.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "orchestrator/scheduler/state/evaluation.hpp"
#include "orchestrator/scheduler/state/fleet.hpp"

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace temper::orchestrator {

/// Progress of a run, for views and for the end of the run.
struct Progress {
  PolicyVersion version;  ///< Completed steps = the published version.
  std::uint64_t groups_dispatched = 0;
  std::uint64_t groups_trained = 0;
  std::uint64_t groups_failed = 0;
  std::uint64_t groups_evicted = 0;
  std::uint64_t responses_failed = 0;
  std::uint64_t groups_filtered = 0;
};

/// What a checkpoint stores. Leases and actors do not outlive one.
struct SavedState {
  Progress progress;
  std::uint64_t next_group = 0;
  DistQueue queue;
  OutstandingGroups outstanding;
  std::uint64_t filtered_since_step = 0;
  std::uint64_t failed_since_step = 0;
  std::optional<PolicyVersion> evaluated;  ///< The last evaluated version.
  std::optional<double> best;              ///< Highest pass_1 so far.
  ProblemSampler problems;
};

void describe(auto& v, Progress& p) {
  v.field(1, "version", p.version);
  v.field(2, "groups_dispatched", p.groups_dispatched);
  v.field(3, "groups_trained", p.groups_trained);
  v.field(4, "groups_failed", p.groups_failed);
  v.field(5, "responses_failed", p.responses_failed);
  v.field(6, "groups_evicted", p.groups_evicted);
  v.field(7, "groups_filtered", p.groups_filtered);
}

void describe(auto& v, SavedState& s) {
  v.field(1, "progress", s.progress);
  v.field(2, "next_group", s.next_group);
  v.field(3, "queue", s.queue);
  v.field(5, "standing", s.outstanding);
  v.field(6, "filtered_since_update", s.filtered_since_step);
  v.field(7, "failed_since_update", s.failed_since_step);
  v.field(8, "evaluated", s.evaluated);
  v.field(9, "best", s.best);
  v.field(10, "problems", s.problems);
}

/// What the trainer was asked to do, and what it holds for the next step.
struct TrainerWork {
  std::optional<LeaseId> training;     ///< The step in progress.
  std::vector<GroupId> batch;          ///< Its groups.
  std::vector<LeaseId> prepared;       ///< Groups of the next step whose gradients were requested.
  std::optional<LeaseId> preparing;    ///< The last of them, while it is computed.
  std::optional<Time> saving;          ///< A checkpoint in progress: its deadline.
  std::optional<PolicyVersion> saved;  ///< Version of the last checkpoint.
};

enum class Ending { Complete, Failed, Stopped };

struct RunState {
  SchedulerConfig config;
  std::unique_ptr<StalenessRule> rule = make_staleness_rule(StalenessRuleKind::Exact);
  SavedState saved;
  Fleet fleet;
  Evaluation evaluation;
  TrainerWork trainer;
  std::set<ResponseId> withdrawn;  ///< Requested back from their engines, and not returned yet.
  Time now{};
  std::optional<Time> drain_deadline;
  /// Until then, dispatch holds groups back that the rule admits (`admission: just_in_time`);
  /// Time::max(): until the next event.
  std::optional<Time> held_until;
  bool stop_requested = false;
  bool rewarded = false;  ///< A response of this run has been given a reward.
  bool finished = false;
  Commands out;

  /// Sets everything that follows from the configuration, as at the start of a run.
  void configure(const SchedulerConfig& to);
  /// Most responses that may be in the table at once.
  std::int64_t credits() const;

  // --- Changes that several parts make
  template <class C>
  void emit(C command) {
    out.emplace_back(std::move(command));
  }
  /// Ends the run, once. `last`: the last of the losses or failures that the reason counts.
  void finish(Ending how, std::optional<Reason> reason = {}, std::optional<Reason> last = {});
  /// The group leaves the run; what engines still generate of it is canceled.
  void release(GroupId group, Outcome outcome, std::optional<Reason> reason = {});
  /// Requests responses back from their engine.
  void withdraw(ActorId engine, std::vector<ResponseId> responses);

  // --- Demand
  bool draining() const { return stop_requested || saved.progress.version.value() >= config.steps; }
  std::uint64_t groups_still_needed() const;
  /// Groups that the bound leaves room for and that the run still needs.
  std::uint64_t groups_to_admit() const;
  bool wants_groups() const;
  /// The staleness rule admits another group under the published version.
  bool can_admit() const;
  /// In progress at engines.
  std::int64_t responses_in_flight() const;
  /// Groups of this v0 and older are what the next step waits for. Empty if it has what it needs,
  /// or if any group will do.
  std::optional<PolicyVersion> urgent() const;

  // --- The next batch
  std::optional<std::vector<GroupId>> select_batch() const;
  /// Time-shared references have responses to score.
  bool waits_for_scores() const;
  /// Once they have, a batch can be trained.
  bool scoring_makes_a_batch() const;
  /// Groups that are worth a pass of their own before the batch is complete.
  std::int64_t least_to_prepare() const;

  // --- Evaluation
  /// The table that grants this lease: that of training, or that of the evaluation in progress.
  const DistQueue& table_of(LeaseId lease) const;
  /// What the actor was given and has not answered, in both tables.
  Load load_of(ActorId actor) const;
  /// The first version, every n-th one, and the last.
  bool evaluation_is_due_at(PolicyVersion version) const;
  /// Cards that are all time-shared go to the engines for an evaluation, and the trainer waits.
  bool evaluation_has_the_cards() const;
  /// The trainer waits for the evaluation: it needs the cards, or the next step would make another
  /// version to evaluate.
  bool evaluation_holds_up_training() const;
};

/// A run between two events.
struct RunTick {
  const RunState& run;
  SwitchPhase phase{};  ///< Of shared cards.
  Time now{};
};

}  // namespace temper::orchestrator
