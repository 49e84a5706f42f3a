// The figures of a run, computed from its records alone, so that the live view, metrics.jsonl,
// summary.json and `temper report` agree by construction. Cost: a few map look-ups per response.
//
// Definitions (docs/explanation/measures.md, section 5.2).
//   generated   tokens sampled, as reported by engines, whether used or not
//   trained     prompt and response tokens of the responses in completed steps
//   effective   trained, except groups whose rewards were all equal: they carry no gradient
//   wasted      generated, minus response tokens that were trained or are still outstanding
//   staleness   of a group: T - v0 in the certificate of the step that trained it;
//               of a token: T - the version that sampled it
// A resume voids what was counted after its checkpoint, except generated tokens: they are wasted.
#pragma once

#include "orchestrator/metrics/slots.hpp"
#include "orchestrator/metrics/source_figures.hpp"
#include "orchestrator/metrics/timeline.hpp"
#include "orchestrator/metrics/turns.hpp"
#include "orchestrator/metrics/update_history.hpp"
#include "orchestrator/metrics/usage.hpp"
#include "orchestrator/scheduler/queue/response_ids.hpp"

#include <deque>
#include <unordered_map>
#include <utility>

namespace temper::orchestrator {

/// A histogram of values with exact quantiles.
class ValueCounts {
 public:
  void add(std::int64_t value) {
    ++total_, sum_ += value;
    if (value < 0 || value >= kDense)
      ++others_[value];
    else if (const auto at = static_cast<std::size_t>(value); at < dense_.size())
      ++dense_[at];
    else
      dense_.resize(at + 1), ++dense_[at];
  }
  std::uint64_t total() const { return total_; }
  double mean() const {
    return total_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(total_);
  }
  /// The smallest value that at least this share of values does not exceed; 0 if there are no
  /// values.
  std::int64_t quantile(double share) const;
  std::int64_t max() const;
  std::map<std::int64_t, std::uint64_t> counts() const;

 private:
  static constexpr std::int64_t kDense = std::int64_t{1} << 17;

  std::vector<std::uint64_t> dense_;  ///< Counts of the values below kDense.
  std::map<std::int64_t, std::uint64_t> others_;
  std::uint64_t total_ = 0;
  std::int64_t sum_ = 0;
};

/// The batch of a step: its certificate, and the versions that sampled it.
struct TrainedBatch {
  struct Group {
    GroupId group;
    PolicyVersion dispatched;                     ///< v0
    PolicyVersion age_from;                       ///< Version from which its age counts.
    std::optional<PolicyVersion> oldest, newest;  ///< Of its tokens; nullopt: no tokens.
  };
  PolicyVersion step;                  ///< Version from which the step was taken.
  std::optional<std::uint64_t> bound;  ///< None: the staleness rule has none.
  std::vector<Group> groups;
};

struct Restart {
  enum class Kind { Actor, Rollback, Resume } kind = Kind::Actor;
  Time time{};
  std::string actor;                     ///< Empty for Resume.
  std::optional<Reason> reason{};        ///< None for Resume.
  std::vector<SettingChange> changes{};  ///< Of Resume.
};

struct SwitchTotals {
  std::uint64_t count = 0, refused = 0;
  Duration total{}, longest{};
  Bytes device_freed, device_taken;  ///< Sums of bytes released and allocated on devices.
  Bytes host_freed, host_taken;
  Bytes process_peak;
};

struct CheckpointTotals {
  std::uint64_t saved = 0, failed = 0;
  std::optional<PolicyVersion> last;
};

class RunMetrics {
 public:
  struct EvaluationResult {
    std::uint64_t sequence = 0;
    Time time{};
    command::Evaluated result;
  };

  /// Keep::All: for a reader that looks at every step of a short run afterwards.
  explicit RunMetrics(UpdateHistory::Keep keep = UpdateHistory::Keep::Latest) : updates_(keep) {}

  /// Call for every record, in order.
  void feed(const Record& record);

  const SchedulerConfig& config() const;
  const Timeline& timeline() const { return timeline_; }
  Timeline& timeline() { return timeline_; }
  const UsageTotals& usage() const { return usage_; }
  /// Occupancy of the engines.
  const Slots& slots() const { return slots_; }
  /// End of the run; during the run, the time of the last record.
  Time wall() const { return wall_; }
  /// Part of wall(): from the start, and from each resume and rollback, until a group is dispatched
  /// or trained.
  Duration starting() const {
    return starting_ + (starting_since_ ? wall_ - *starting_since_ : Duration{});
  }
  const std::optional<command::Finish>& finish() const { return finish_; }

  // --- Rolled back by a resume
  const UpdateHistory& history() const { return updates_; }
  /// The latest completed steps, in order of version; history() has their number.
  const std::vector<Update>& updates() const { return updates_.kept(); }
  /// Batch of the last completed step. Requires: there is one, and no resume since.
  const TrainedBatch& last_batch() const { return last_batch_; }
  TokenCounts tokens() const { return {generated_, stored_.trained, stored_.effective}; }
  const ValueCounts& staleness() const { return stored_.staleness; }
  /// Mean over trained tokens.
  double token_staleness() const {
    const auto tokens = stored_.trained_responses.count();
    return tokens == 0 ? 0 : static_cast<double>(stored_.token_age) / static_cast<double>(tokens);
  }
  /// Lengths of trained responses, in tokens.
  const ValueCounts& lengths() const { return stored_.lengths; }
  /// Mean length of responses that finished, whether trained or not; failed ones do not count.
  const ValueCounts& generated_lengths() const { return stored_.generated_lengths; }
  GroupCounts groups() const { return stored_.groups; }
  std::uint64_t responses_failed() const { return stored_.responses_failed; }
  QueueDepth queue() const { return queue_; }
  /// In the order in which they finished.
  const std::vector<EvaluationResult>& evaluations() const { return evaluations_; }
  /// The first one with the highest pass_1; null: none yet.
  const command::Evaluated* best_evaluation() const;
  /// The version that is being evaluated; nullopt: no evaluation is running.
  const std::optional<PolicyVersion>& evaluating() const { return evaluating_; }

  // --- Not rolled back by a resume
  /// Work of language models as judges. Empty if no judge has worked.
  const std::optional<actors::JudgeUsage>& judges() const { return judges_; }
  Tokens wasted() const { return generated_ - stored_.trained_responses - outstanding_; }
  const std::vector<Restart>& restarts() const { return restarts_; }
  const std::map<actors::SwitchAction, SwitchTotals>& switches() const { return switches_; }
  const Turns& turns() const { return turns_; }
  const CheckpointTotals& checkpoints() const { return checkpoints_; }
  std::uint64_t resumes() const { return resumes_; }
  /// Generated again because their tensors were gone.
  std::uint64_t responses_lost() const { return responses_lost_; }
  /// Protocol violations; each cost its sender a restart.
  std::uint64_t lies() const { return lies_; }
  /// Host of the worker that attached last as one of the card's actors; empty: none did, so the
  /// card is on the orchestrator's host.
  std::string host_of(CardId card) const;
  /// Reason of the last failed group; empty: none failed.
  const std::string& last_failure() const { return last_failure_; }
  /// Time from the end of a step until an engine uses its weights.
  Duration publish_lag_max() const { return lag_max_; }
  Duration publish_lag_mean() const {
    return lags_ == 0 ? Duration{} : lag_sum_ / static_cast<std::int64_t>(lags_);
  }

 private:
  struct Response {
    Tokens prompt, tokens;
    double reward = 0;
    std::map<std::string, double> terms;          ///< Rewards of the terms of a sum.
    std::int64_t token_versions = 0;              ///< Sum of the versions that sampled its tokens.
    std::optional<PolicyVersion> oldest, newest;  ///< Of its tokens.
    LeaseId generate, reference, judge;           ///< Valid leases; 0: none.
    ActorId engine;                               ///< Engine of the last dispatch.
    bool generated = false, scored = false, judged = false, failed = false;
  };
  enum class Stage { Generating, Scoring, Ready, Training };
  struct Group {
    std::vector<Response> responses;
    Stage stage = Stage::Generating;
  };
  using Groups = std::unordered_map<std::uint64_t, Group>;  // Never iterated to decide an order.
  struct Lease {
    ActorId actor;
    std::vector<ResponseId> responses;
  };
  /// State that a resume rolls back.
  struct SavedCounts {
    Tokens trained, effective, trained_responses;
    GroupCounts groups;
    std::uint64_t responses_failed = 0;
    std::int64_t token_age = 0;
    ValueCounts staleness, lengths, generated_lengths;
    SourceCounts sources;
  };
  struct Snapshot {
    std::uint64_t sequence = 0;
    SavedCounts stored;
    Groups groups;
    UpdateHistory::Mark updates;
  };

  void on_event(const event::Started& e);
  void on_event(const event::Resumed& e);
  void on_event(const event::Scaled& e);
  void on_event(const event::ActorDown& e) { lies_ += e.lied ? 1 : 0; }
  void on_event(const event::WorkerAttached& e) { hosts_[e.actor.value()] = e.host; }
  void on_event(const event::Generated& e);
  void on_event(const event::ReferenceScored& e);
  void on_event(const event::Judged& e);
  void on_event(const event::Trained& e);
  void on_event(const event::TensorsLost& e) {
    if (training_ && training_->lease == e.lease)
      cancel_step();
    start_over(e.lost);
  }
  void on_event(const event::WeightsCommitted& e);
  void on_event(const event::Switched& e);
  void on_event(const event::CheckpointSaved& e);
  template <class E>
  void on_event(const E&) {}

  void on_command(const command::Launch& c) { restart(c.actor, c.reason); }
  void on_command(const command::Discard& c) { restart(c.actor, c.reason); }
  void on_command(const command::Retire& c) { void_leases(c.actor); }
  void on_command(const command::Dispatch& c);
  void on_command(const command::ScoreReference& c);
  void on_command(const command::Judge& c);
  void on_command(const command::Train& c);
  void on_command(const command::Release& c);
  void on_command(const command::Rollback& c);
  void on_command(const command::Finish& c) { finish_ = c; }
  void end_start() {
    if (const auto since = std::exchange(starting_since_, std::nullopt))
      starting_ += now_ - *since;
  }
  void feed_training(const Record& record);
  void feed_evaluation(const Record& record);
  template <class C>
  void on_command(const C&) {}

  std::uint64_t group_of(ResponseId r) const { return ids_.group_of(r).value(); }
  using Found = std::pair<Group*, Response*>;
  /// Both null if its group is not in the table.
  Found find(ResponseId r);
  void train_group(const actors::Certificate::Entry& entry, PolicyVersion step, Update& update);
  void restart(ActorId actor, const std::optional<Reason>& reason);
  void void_leases(ActorId actor);
  /// The step in progress has not been trained. Requires: there is one.
  void cancel_step() {
    for (const auto& entry : training_->certificate.groups) {
      if (const auto it = groups_.find(entry.group.value()); it != groups_.end())
        move_to(it->second, Stage::Ready);
    }
    training_.reset();
  }
  void settle_stage(Group& group);
  void move_to(Group& group, Stage stage);
  std::int64_t& depth(Stage stage);
  void count_outstanding();
  void take_snapshot(std::uint64_t sequence);
  void go_back(const Snapshot& back);
  void fail(Response& r) { stored_.responses_failed += std::exchange(r.failed, true) ? 0 : 1; }
  void start_over(const std::vector<ResponseId>& lost);
  std::string name_of_actor(ActorId actor) const;

  Indirect<SchedulerConfig> config_;
  ResponseIds ids_;
  bool with_reference_ = false;

  Timeline timeline_;
  Turns turns_;
  UsageTotals usage_;
  Slots slots_;
  Time now_{}, wall_{};
  std::optional<Time> starting_since_ = Time{};
  Duration starting_{};
  std::optional<command::Finish> finish_;

  SavedCounts stored_;
  Groups groups_;
  UpdateHistory updates_;
  TrainedBatch last_batch_;
  std::deque<Snapshot> snapshots_;
  QueueDepth queue_;    ///< Derived from groups_.
  Tokens outstanding_;  ///< Derived from groups_: their response tokens.

  Totals before_;  ///< The `before` of the next step.
  Tokens generated_;
  std::unordered_map<std::uint64_t, Lease> leases_;  ///< Of reference and reward.
  std::optional<command::Train> training_;
  std::vector<EvaluationResult> evaluations_;
  std::optional<PolicyVersion> evaluating_;
  std::map<PolicyVersion, Time> trained_at_;
  std::uint64_t lags_ = 0;
  Duration lag_sum_{}, lag_max_{};
  std::vector<Restart> restarts_;
  std::map<actors::SwitchAction, SwitchTotals> switches_;
  CheckpointTotals checkpoints_;
  std::uint64_t resumes_ = 0;
  std::optional<actors::JudgeUsage> judges_;
  std::uint64_t responses_lost_ = 0;
  std::uint64_t lies_ = 0;
  std::map<std::uint32_t, std::string> hosts_;  ///< Of attached workers, by actor.
  std::string last_failure_;
};

}  // namespace temper::orchestrator
