// summary.json: outcome and figures of a run (definitions in run_metrics.hpp). Computed from
// RunMetrics alone, so it can be rebuilt from events.log.
#pragma once

#include "core/json.hpp"
#include "orchestrator/metrics/cost.hpp"
#include "orchestrator/metrics/run_metrics.hpp"

namespace temper::orchestrator {

/// Facts about a run that its records do not have.
struct RunIdentity {
  std::string name;
  std::uint64_t seed = 0;
  std::uint64_t log_hash = 0;
  bool simulated = false;
  CostSection cost{};
};

struct TokenSummary {
  std::int64_t generated = 0, trained = 0, effective = 0;
  double generated_per_s = 0, trained_per_s = 0, effective_per_s = 0, trained_per_s_per_card = 0;
};
struct CardSummary {
  CardId card;
  double busy = 0;
  std::map<actors::CardState, double> states_s;
  std::map<actors::CardState, std::int64_t> states_ns;
  std::string host{};  ///< Host of the attached worker; empty: that of the orchestrator.
};
struct UtilizationSummary {
  double busy = 0;
  std::map<actors::CardState, double> states;
  std::int64_t wall_ns = 0;
  double no_generation_or_training_s = 0;
  std::vector<CardSummary> per_card;
};
struct SlotSummary {
  std::int64_t slots = 0;
  double occupancy = 0, while_serving = 0;
};
/// Of the tails of batches (batch_tail.hpp).
struct TailSummary {
  double s = 0;                      ///< Wall time.
  double waits_s = 0, decode_s = 0;  ///< Card time without work, and of decode and prefill.
  double share = 0;                  ///< Of all card time: both.
};
struct StalenessSummary {
  std::uint64_t bound = 0;
  std::int64_t max = 0;
  double mean = 0;
  std::map<std::int64_t, std::uint64_t> histogram;
  double token_mean = 0;
  double publish_lag_mean_s = 0, publish_lag_max_s = 0;
};
struct GroupSummary {
  std::uint64_t trained = 0, filtered = 0, failed = 0, responses_failed = 0;
  std::uint64_t evicted = 0;         ///< Dropped because of their age.
  std::string last_failure{};        ///< Last failed group and its reason; empty: none failed.
  std::uint64_t responses_lost = 0;  ///< Generated again because their tensors were gone.
};
struct RewardSummary {
  std::optional<double> first, last, best;
};
struct LengthSummary {
  double mean = 0;
  std::int64_t p50 = 0, p99 = 0, max = 0;
  double generated_mean = 0;  ///< Over all finished responses, trained or not.
};
struct WaitSummary {
  actors::RoleKind role = actors::RoleKind::Rollout;
  actors::CardState state = actors::CardState::Idle;
  std::string on;
  double s = 0, share = 0, longest_s = 0, longest_at_s = 0;
  std::string longest_on;
  WaitKind cause = WaitKind::Work;  ///< As recorded.
  bool tail = false;                ///< It waits for the last responses of a batch.
};
struct RestartSummary {
  Restart::Kind kind = Restart::Kind::Actor;
  double at_s = 0;
  std::string actor, reason;
};
struct SwitchSummary {
  std::uint64_t count = 0, refused = 0;
  double s = 0, mean_s = 0, longest_s = 0;
  std::int64_t device_bytes_freed = 0, device_bytes_taken = 0;
  std::int64_t host_bytes_freed = 0, host_bytes_taken = 0;
  std::int64_t process_peak_bytes = 0;
};
struct TurnSummary {
  std::uint64_t count = 0;
  double mean_s = 0, longest_s = 0;
};
struct SwitchesSummary {
  std::uint64_t count = 0;
  double s = 0;
  std::map<actors::SwitchAction, SwitchSummary> actions;
  std::map<std::string, TurnSummary> states;  ///< Over all actors (metrics/turns.hpp).
};
struct CheckpointSummary {
  std::uint64_t saved = 0, failed = 0;
  std::optional<PolicyVersion> last;
};

struct EvaluationPoint {
  PolicyVersion step;
  double at_s = 0;  ///< Time of its end.
  double seconds = 0;
  double pass_1 = 0, pass_k = 0, reward = 0;
  std::uint64_t failed = 0;
  double pass_1_low = 0, pass_1_high = 0;  ///< 95 % interval, over problems.
  bool within_noise = false;               ///< Its pass_1 does not differ from the best one's.
};
struct EvaluationSummary {
  std::uint64_t problems = 0, samples = 0;
  double card_s = 0, share = 0;  ///< Card time of evaluations, and its share of all card time.
  EvaluationPoint best;
  std::vector<EvaluationPoint> points;
};

struct Summary {
  bool ok = false, stopped = false;
  bool ended = true;  ///< False: the run is not over, or its log was truncated.
  std::string reason;
  std::string name;
  std::uint64_t seed = 0;
  std::uint64_t steps = 0;
  double wall_s = 0;
  TokenSummary tokens;
  std::uint64_t cards = 0;
  UtilizationSummary utilization;
  SlotSummary slots;
  TailSummary tail;
  StalenessSummary staleness;
  std::int64_t wasted_tokens = 0;
  GroupSummary groups;
  RewardSummary reward;
  LengthSummary lengths;
  std::vector<WaitSummary> waits;
  std::vector<RestartSummary> restarts;
  SwitchesSummary switches;
  CheckpointSummary checkpoints;
  /// Simulated hardware only; see docs/explanation/simulation.md.
  std::optional<MfuSummary> mfu;
  std::optional<std::map<actors::RoleKind, RoleMemory>> memory;
  std::optional<NetworkSummary> network;
  std::optional<EnginesSummary> engines{};
  std::optional<TensorSummary> tensors{};
  std::uint64_t lies = 0;  ///< Protocol violations; their senders were restarted.
  std::string log_hash;    ///< 16 hexadecimal digits.
  bool simulated = false;  ///< Times are virtual.
  std::optional<EvaluationSummary> evaluation;  ///< None: no evaluation.
  double start_s = 0;                           ///< RunMetrics::starting(); part of the wall time.
  std::optional<actors::JudgeUsage> judges{};   ///< Of the whole run. Empty without a judge.
  std::optional<CostSummary> cost{};            ///< Of the whole run. Empty without prices.
  /// Figures of the last step by name (metric_table.hpp), if finite; without states and evaluation.
  std::map<std::string, double> last_step;
};

struct PipelineConfig;
RunIdentity identity_of(const PipelineConfig& config, std::uint64_t log_hash);

Summary summarize(const RunMetrics& metrics, const RunIdentity& identity);

void describe(auto& v, TokenSummary& s) {
  v.field(1, "generated", s.generated);
  v.field(2, "trained", s.trained);
  v.field(3, "effective", s.effective);
  v.field(4, "generated_per_s", s.generated_per_s);
  v.field(5, "trained_per_s", s.trained_per_s);
  v.field(6, "effective_per_s", s.effective_per_s);
  v.field(7, "trained_per_s_per_card", s.trained_per_s_per_card);
}
void describe(auto& v, CardSummary& s) {
  v.field(1, "card", s.card);
  v.field(2, "busy", s.busy);
  v.field(3, "states_s", s.states_s);
  v.field(4, "states_ns", s.states_ns);
  v.field(5, "host", s.host);
}
void describe(auto& v, UtilizationSummary& s) {
  v.field(1, "busy", s.busy);
  v.field(2, "states", s.states);
  v.field(3, "wall_ns", s.wall_ns);
  v.field(4, "no_generation_or_training_s", s.no_generation_or_training_s);
  v.field(5, "per_card", s.per_card);
}
void describe(auto& v, SlotSummary& s) {
  v.field(1, "slots", s.slots, {.doc = "Slots of all rollout engines."});
  v.field(2,
          "occupancy",
          s.occupancy,
          {.doc = "Mean share of slots with a response, over the wall time."});
  v.field(
      3,
      "while_serving",
      s.while_serving,
      {.doc = "Mean share of slots with a response, over the time in which their engine had any."});
}
void describe(auto& v, TailSummary& s) {
  v.field(1,
          "s",
          s.s,
          {.doc = "Wall time in which only the last tenth of a batch's responses, or less, was "
                  "generated and the next step lacked it."});
  v.field(2, "waits_s", s.waits_s, {.doc = "Card time that waited for these responses."});
  v.field(3, "decode_s", s.decode_s, {.doc = "Card time that generated them."});
  v.field(4, "share", s.share, {.doc = "Share of all card time that both are."});
}
void describe(auto& v, StalenessSummary& s) {
  v.field(1, "bound", s.bound);
  v.field(2, "max", s.max);
  v.field(3, "mean", s.mean);
  v.field(4, "histogram", s.histogram);
  v.field(5, "token_mean", s.token_mean);
  v.field(6, "publish_lag_mean_s", s.publish_lag_mean_s);
  v.field(7, "publish_lag_max_s", s.publish_lag_max_s);
}
void describe(auto& v, GroupSummary& s) {
  v.field(1, "trained", s.trained);
  v.field(2, "filtered", s.filtered);
  v.field(3, "failed", s.failed);
  v.field(4, "responses_failed", s.responses_failed);
  v.field(5, "evicted", s.evicted);
  v.field(6, "last_failure", s.last_failure);
  v.field(7, "responses_lost", s.responses_lost);
}
void describe(auto& v, RewardSummary& s) {
  v.field(1, "first", s.first);
  v.field(2, "last", s.last);
  v.field(3, "best", s.best);
}
void describe(auto& v, LengthSummary& s) {
  v.field(1, "mean", s.mean);
  v.field(2, "p50", s.p50);
  v.field(3, "p99", s.p99);
  v.field(4, "max", s.max);
  v.field(5, "generated_mean", s.generated_mean);
}
void describe(auto& v, WaitSummary& s) {
  v.field(1, "role", s.role);
  v.field(2, "state", s.state);
  v.field(3, "on", s.on);
  v.field(4, "s", s.s);
  v.field(5, "share", s.share);
  v.field(6, "longest_s", s.longest_s);
  v.field(7, "longest_at_s", s.longest_at_s);
  v.field(8, "longest_on", s.longest_on);
  v.field(9, "cause", s.cause);
  v.field(10, "tail", s.tail);
}
void describe(auto& v, RestartSummary& s) {
  v.field(1, "kind", s.kind);
  v.field(2, "at_s", s.at_s);
  v.field(3, "actor", s.actor);
  v.field(4, "reason", s.reason);
}
void describe(auto& v, SwitchSummary& s) {
  v.field(1, "count", s.count);
  v.field(2, "refused", s.refused);
  v.field(3, "s", s.s);
  v.field(4, "mean_s", s.mean_s);
  v.field(5, "longest_s", s.longest_s);
  v.field(6, "device_bytes_freed", s.device_bytes_freed);
  v.field(7, "device_bytes_taken", s.device_bytes_taken);
  v.field(8, "host_bytes_freed", s.host_bytes_freed);
  v.field(9, "host_bytes_taken", s.host_bytes_taken);
  v.field(10, "process_peak_bytes", s.process_peak_bytes);
}
void describe(auto& v, TurnSummary& s) {
  v.field(1, "count", s.count);
  v.field(2, "mean_s", s.mean_s);
  v.field(3, "longest_s", s.longest_s);
}
void describe(auto& v, SwitchesSummary& s) {
  v.field(1, "count", s.count);
  v.field(2, "s", s.s);
  v.field(3, "actions", s.actions);
  v.field(4, "states", s.states);
}
void describe(auto& v, CheckpointSummary& s) {
  v.field(1, "saved", s.saved);
  v.field(2, "failed", s.failed);
  v.field(3, "last", s.last);
}
void describe(auto& v, EvaluationPoint& s) {
  v.field(1, "step", s.step);
  v.field(2, "at_s", s.at_s);
  v.field(3, "seconds", s.seconds);
  v.field(4, "pass_1", s.pass_1);
  v.field(5, "pass_k", s.pass_k);
  v.field(6, "reward", s.reward);
  v.field(7, "failed", s.failed);
  v.field(
      8,
      "pass_1_low",
      s.pass_1_low,
      {.doc = "Wilson 95 % interval; each problem is one trial, however many responses it has."});
  v.field(9, "pass_1_high", s.pass_1_high);
  v.field(10,
          "within_noise",
          s.within_noise,
          {.doc = "Its pass_1 does not differ from the best one's."});
}
void describe(auto& v, EvaluationSummary& s) {
  v.field(1, "problems", s.problems);
  v.field(2, "samples", s.samples);
  v.field(3, "card_s", s.card_s);
  v.field(4, "share", s.share);
  v.field(5, "best", s.best);
  v.field(6, "points", s.points);
}
void describe(auto& v, Summary& s) {
  v.field(1, "ok", s.ok);
  v.field(2, "stopped", s.stopped);
  v.field(3, "reason", s.reason);
  v.field(4, "name", s.name);
  v.field(5, "seed", s.seed);
  v.field(6, "steps", s.steps);
  v.field(7, "wall_s", s.wall_s);
  v.field(8, "tokens", s.tokens);
  v.field(9, "cards", s.cards);
  v.field(10, "utilization", s.utilization);
  v.field(11, "staleness", s.staleness);
  v.field(12, "wasted_tokens", s.wasted_tokens);
  v.field(13, "groups", s.groups);
  v.field(14, "reward", s.reward);
  v.field(15, "lengths", s.lengths);
  v.field(16, "waits", s.waits);
  v.field(17, "restarts", s.restarts);
  v.field(18, "switches", s.switches);
  v.field(19, "checkpoints", s.checkpoints);
  v.field(20, "log_hash", s.log_hash);
  v.field(21, "simulated", s.simulated);
  v.field(22, "mfu", s.mfu, {.doc = "Model FLOP utilization (simulated runs)."});
  v.field(23, "memory", s.memory, {.doc = "High-water marks by role (simulated runs)."});
  v.field(24, "network", s.network, {.doc = "Bytes by plane (simulated runs)."});
  v.field(25, "lies", s.lies);
  v.field(26, "slots", s.slots);
  v.field(27, "evaluation", s.evaluation, {.doc = "Evaluation on held-out problems."});
  v.field(28, "ended", s.ended);
  v.field(29,
          "start_s",
          s.start_s,
          {.doc = "Seconds from the start, and from each resume, until there was work."});
  v.field(30, "last_step", s.last_step, {.doc = "Metrics of the last step."});
  v.field(31, "tail", s.tail, {.doc = "Time that only the last responses of a batch took."});
  v.field(32, "judges", s.judges, {.doc = "Work of judges over the whole run; null: no judge."});
  v.field(33, "cost", s.cost, {.doc = "Price and energy of the run; null: none is configured."});
  v.field(34, "engines", s.engines, {.doc = "Prefill and decode of the engines (simulated runs)."});
  v.field(35, "tensors", s.tensors, {.doc = "Tensors of responses, if they have any."});
}

}  // namespace temper::orchestrator

namespace temper {
template <>
struct EnumNames<orchestrator::Restart::Kind> {
  using K = orchestrator::Restart::Kind;
  static constexpr std::array<std::pair<K, std::string_view>, 3> value{
      {{K::Actor, "actor"}, {K::Rollback, "rollback"}, {K::Resume, "resume"}}};
};
}  // namespace temper
