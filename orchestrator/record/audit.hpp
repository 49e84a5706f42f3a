// The auditor: verifies the invariants of a run from its recorded events and commands. Its code is
// independent; it shares only the structs of the log with the scheduler.
//
// Checked:
//   staleness     every trained group is within the bound, by the versions that engines reported;
//                 with `rollout.on_new_weights: finish`, each response is of one version
//   conservation  every dispatched group is exactly one of trained (once), filtered, failed and
//                 outstanding; a run that succeeded leaves none outstanding
//   completeness  every trained response was generated, judged and, if the run has a reference,
//                 scored, under valid leases; only groups with equal rewards were filtered, and
//                 only if the run filters
//   order         the published version grows by one; engines never return to an older version;
//                 time never decreases; activity spans do not overlap
//   certificates  every batch has one, with its groups, their versions and the bound
//   teachers      each response is scored by a reference of the teacher of its problem
//   problems      each group has the next problem of its source that is not set aside; sources get
//                 their shares
//   evaluations   each evaluates every problem under one version, and its result follows from the
//                 rewards
//   actors        work is given only to actors that the run has; ids keep their meaning
//   waits         what an idle trainer, reference or verifier is said to lack is missing; the time
//                 in which only the last responses of a batch were left is that of summary.json
// After a resume, records behind the checkpoint are void, and the rest is checked as one run.
#pragma once

#include "orchestrator/record/audited_batches.hpp"
#include "orchestrator/record/evaluation_audit.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/record/problem_audit.hpp"
#include "orchestrator/record/wait_audit.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Further violations are not reported.
inline constexpr std::size_t kMostViolations = 50;

struct AuditReport {
  std::uint64_t records = 0;
  std::uint64_t voided = 0;  ///< Records undone by a resume.
  std::uint64_t steps = 0;
  std::uint64_t groups_dispatched = 0, groups_trained = 0, groups_filtered = 0, groups_failed = 0;
  std::uint64_t groups_evicted = 0;  ///< Dropped because of their age.
  std::uint64_t groups_outstanding = 0;
  std::uint64_t max_staleness = 0;
  std::optional<std::uint64_t> bound;  ///< Staleness bound; nullopt: the rule has none.
  double mean_staleness = 0;
  bool ended = false;                   ///< The scheduler finished the run, with success or not.
  std::string log_end;                  ///< How the log ends, unless with a whole record.
  std::uint64_t clocks = 0;             ///< Clocks of attached workers that were read.
  Duration clock_apart{};               ///< Largest offset of them; it was corrected.
  Duration clock_error{};               ///< Largest error that may remain.
  std::uint64_t attached = 0;           ///< Number of times a worker attached.
  std::uint64_t hosts = 0;              ///< Hosts of the last worker of each slot.
  Duration tail{};                      ///< In which only the last responses of a batch were left.
  Time end{};                           ///< Of the run; until it ends, of its last record.
  std::vector<std::string> violations;  ///< Each names its record; empty: none.
};

void describe(auto& v, AuditReport& r) {
  v.field(1, "records", r.records);
  v.field(2, "voided", r.voided);
  v.field(3, "steps", r.steps);
  v.field(4, "groups_dispatched", r.groups_dispatched);
  v.field(5, "groups_trained", r.groups_trained);
  v.field(6, "groups_filtered", r.groups_filtered);
  v.field(7, "groups_failed", r.groups_failed);
  v.field(8, "groups_outstanding", r.groups_outstanding);
  v.field(9, "max_staleness", r.max_staleness);
  v.field(10, "bound", r.bound);
  v.field(11, "mean_staleness", r.mean_staleness);
  v.field(12, "violations", r.violations);
  v.field(13, "groups_evicted", r.groups_evicted);
  v.field(14, "ended", r.ended);
  v.field(15, "log_end", r.log_end);
  v.field(16, "clocks", r.clocks);
  v.field(17, "clock_apart", r.clock_apart);
  v.field(18, "clock_error", r.clock_error);
  v.field(19, "attached", r.attached);
  v.field(20, "hosts", r.hosts);
  v.field(21, "tail", r.tail);
  v.field(22, "end", r.end);
}

class Auditor {
 public:
  void feed(const Record& record);
  /// Requires: all records were fed.
  AuditReport report() const;
  /// The batches of all steps that are not void, in order; for certificate_audit.hpp.
  const AuditedBatches& batches() const { return batches_; }

 private:
  struct ResponseState {
    std::uint64_t tokens = 0;
    std::uint64_t version_sum = 0;  ///< Sum over its tokens.
    std::uint64_t first_version = 0, last_version = 0;
    bool begun = false;  ///< The versions are known.
    bool generated = false, judged = false, scored = false, failed = false;
    double reward = 0;  ///< If judged.
  };
  struct GroupState {
    std::uint64_t dispatched = 0;  ///< v0
    std::uint64_t age_from = 0;    ///< Version from which its age counts.
    std::uint64_t in_update = 0;   ///< Lease of the step it is in; 0: none.
    bool promised = false;         ///< Its gradients were requested: the next step must contain it.
    std::uint32_t teacher = 0;     ///< Of its problem; 0 in a run without teachers.
    std::map<std::uint64_t, ResponseState> responses;
  };
  struct LeaseState {
    std::uint32_t actor = 0;
    std::vector<std::uint64_t> responses;
  };
  using Outstanding = std::map<std::uint64_t, GroupState>;
  struct State {
    std::uint64_t version = 0;
    std::uint64_t dispatched = 0, trained = 0, filtered = 0, failed = 0, evicted = 0;
    std::uint64_t age_sum = 0, age_max = 0;
    std::uint64_t highest_group = 0;
    Outstanding outstanding;
    std::map<std::uint64_t, LeaseState> leases;
    std::map<std::uint32_t, std::uint64_t> engine_version;
    bool trainer_parked = false;  ///< Its state is in host memory; others have its cards.
    /// Engines whose cards the trainer and time-shared references use; nullopt: all time-shared
    /// engines.
    std::optional<std::set<std::uint32_t>> share;
    std::set<std::uint32_t> visiting;  ///< Time-shared references that are on the cards now.
    std::uint64_t updating = 0;        ///< Lease of the current step; 0: none.
    EvaluationAudit evaluation;
    ProblemAudit problems;
    WaitAudit waits;
  };

  void on_event(const event::Started& e);
  void on_event(const event::Resumed& e);
  void on_event(const event::ActorReady& e) { state_.engine_version.erase(e.actor.value()); }
  void on_event(const event::ActorDown& e) { forget(e.actor); }
  void on_event(const event::ActorLoading&) {}
  void on_event(const event::Generated& e);
  void on_event(const event::ReferenceScored& e);
  void on_event(const event::Judged& e);
  void on_event(const event::Trained& e);
  void on_event(const event::TensorsLost& e);
  void on_event(const event::Prepared&) {}
  void on_event(const event::WeightsStaged&) {}
  void on_event(const event::WeightsCommitted& e);
  void on_event(const event::Switched& e);
  void on_event(const event::CheckpointSaved& e);
  void on_event(const event::Activity& e);
  void on_event(const event::ClockRead& e);
  void on_event(const event::WorkerAttached& e);
  void on_event(const event::Scaled& e) { change_actors(e.actors); }
  void on_event(const event::DeadlineReached&) {}
  void on_event(const event::StopRequested&) {}
  void on_event(const event::Aborted&) {}

  void on_command(const command::Dispatch& c);
  void on_command(const command::ScoreReference& c);
  void on_command(const command::Judge& c);
  void on_command(const command::Cancel& c);
  void on_command(const command::Evaluated& c) { note(state_.evaluation.evaluated(c)); }
  void on_command(const command::Train& c);
  void on_command(const command::Prepare& c);
  void on_command(const command::Release& c);
  void on_command(const command::Launch& c) { forget(c.actor); }
  void on_command(const command::Discard& c) { forget(c.actor); }
  void on_command(const command::Retire& c);
  void on_command(const command::Switch& c);
  void on_command(const command::Waiting& c);
  void on_command(const command::Finish& c);
  template <class C>
  void on_command(const C&) {}

  /// Voids everything the actor holds, because its process ends.
  void forget(ActorId actor);
  void drop_empty_leases();
  /// A generated response whose tensors no longer exist is back at its prompt.
  void start_over(ResponseId lost);
  /// The group leaves the run.
  void drop(Outstanding::iterator group, Outcome outcome);
  void violation(const std::string& what);
  void note(const std::vector<std::string>& violations);
  /// The largest age that the staleness rule allows; nullopt: any.
  std::optional<std::uint64_t> bound() const;
  /// False for an actor that the run does not have.
  bool takes_turns(ActorId actor) const {
    return actor.value() < config_.actors.size() && config_.actors[actor.value()].takes_turns;
  }
  /// Checks that ids keep their meaning for the whole run.
  void change_actors(const std::vector<ActorSpec>& actors);
  /// Checks that the run has this actor, and has not removed it.
  void check_at_work(ActorId actor);
  void check_filtered(GroupId id, const GroupState& group);
  /// Whether the trainer can lack this.
  void check_trainer_waits(const WaitCause& cause);
  void check_waits();
  /// What the next record finds: the last responses of a batch (metrics/batch_tail.hpp), or not.
  void check_tail();
  /// Derives the stages of all responses, none of which is leased.
  void recount_stages();
  /// Whether a time-shared engine holds weights on cards that the trainer or a reference uses.
  bool shared_cards_hold_engines() const;
  /// Whether the cards of this engine are those that the trainer or a reference uses.
  bool is_of_share(std::uint32_t engine) const {
    return !state_.share || state_.share->contains(engine);
  }
  void take_share(const std::vector<ActorId>& cards_of);
  /// What an engine or a reference holds is with nobody, because its process ends.
  void take_back(ActorId actor);
  /// Of a response that is not leased to an engine or a reference.
  void set_stage(std::uint64_t id, const ResponseState& r);
  /// Checks that each response is scored by a reference of its teacher.
  void check_teacher(const command::ScoreReference& c);
  bool is_whole(const ResponseState& r) const {
    return r.generated && r.judged && (r.scored || !config_.has_reference());
  }
  static AuditedBatch::Group certified(std::uint64_t id, const GroupState& group);
  static void weigh(GroupState& group);
  std::uint64_t group_of(std::uint64_t response) const;
  ResponseState* response(std::uint64_t id);
  void grant(ActorId actor, LeaseId lease, const std::vector<ResponseId>& responses);
  /// The lease as granted to this actor and not yet ended; null: stale, to be ignored.
  LeaseState* granted(LeaseId lease, ActorId actor);

  SchedulerConfig config_;
  State state_;
  /// By sequence number of Started and of the latest kMostWaysBack CheckpointSaved.
  std::map<std::uint64_t, State> saved_;
  /// Time in the tail of a batch. No resume undoes it; after one it begins with the next step.
  struct Tail {
    bool awaited = false;  ///< The trainer lacks groups, until it says otherwise.
    bool counts = true;
    std::optional<Time> since;
    Duration sum{};
  } tail_;
  std::map<std::uint32_t, Time> busy_until_;
  std::map<std::uint32_t, event::ClockRead> clocks_;  ///< The latest of each actor.
  Duration clock_apart_{};
  std::map<std::uint32_t, std::string> host_of_;  ///< The latest of each attached actor.
  std::uint64_t attached_ = 0;
  std::uint64_t records_ = 0, voided_ = 0, current_ = 0;
  Time last_time_{};
  bool ended_ = false;
  Time end_{};  ///< When it ended, or the last record before.
  AuditedBatches batches_;
  std::vector<std::string> violations_;
};

}  // namespace temper::orchestrator
