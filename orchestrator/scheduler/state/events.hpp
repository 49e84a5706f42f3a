// Everything that can happen to the scheduler. Metadata only: tokens and log-probs stay with the
// driver (live/payload_store.hpp). Each event is recorded in events.log as it was delivered.
#pragma once

#include "actors/protocol/judge_usage.hpp"
#include "actors/protocol/lifecycle.hpp"
#include "actors/protocol/sample.hpp"
#include "actors/protocol/term_rewards.hpp"
#include "actors/protocol/weights.hpp"
#include "core/indirect.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"
#include "orchestrator/scheduler/state/setting_change.hpp"

#include <optional>
#include <variant>
#include <vector>

namespace temper::orchestrator {
struct SchedulerConfig;
}

namespace temper::orchestrator::event {

/// The first event of a run; the scheduler launches its actors.
struct Started {
  static constexpr std::string_view kName = "started";
  Indirect<SchedulerConfig> config{};
};
void describe(auto& v, Started& e) {
  v.field(1, "config", e.config);
}

/// The run resumes from a checkpoint: the state is that after the event numbered `sequence`, later
/// records are void, and no actor runs.
struct Resumed {
  static constexpr std::string_view kName = "resumed";
  std::uint64_t sequence = 0;  ///< Of CheckpointSaved, or of Started without a checkpoint.
  std::int32_t rollbacks = 0;  ///< Rollbacks in a row, without the user.
  /// The configuration from here on; nullopt: unchanged.
  std::optional<Indirect<SchedulerConfig>> config{};
  std::vector<SettingChange> changes{};  ///< Settings that the user changed.
  /// Generated responses whose tensors no longer exist: they are generated again.
  std::vector<ResponseId> lost{};
};
void describe(auto& v, Resumed& e) {
  v.field(1, "sequence", e.sequence);
  v.field(2, "rollbacks", e.rollbacks);
  v.field(3, "config", e.config);
  v.field(4, "changes", e.changes);
  v.field(5, "lost", e.lost);
}

/// An actor is registered and its role is built. `weights`: trainer only, the version that it
/// holds.
struct ActorReady {
  static constexpr std::string_view kName = "actor_ready";
  ActorId actor;
  std::optional<PolicyVersion> weights;
};
void describe(auto& v, ActorReady& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "weights", e.weights);
}

/// An actor's process ended, became silent, or violated the protocol
/// (Scheduler::find_invalid_claim()).
struct ActorDown {
  static constexpr std::string_view kName = "actor_down";
  ActorId actor;
  std::string reason;  ///< Text of the driver or the worker.
  bool lied = false;
  bool permanent = false;  ///< Another attempt would fail in the same way.
  /// A loss, gradient, weight or logit was infinite or NaN. False in logs of earlier builds, which
  /// told it in `reason` only.
  bool not_finite = false;
};
void describe(auto& v, ActorDown& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "reason", e.reason);
  v.field(3, "lied", e.lied);
  v.field(4, "permanent", e.permanent);
  v.field(5, "not_finite", e.not_finite);
}

/// An actor that is still starting makes progress. The driver posts it only if the scheduler wants
/// to know (Scheduler::wants_to_know_that_loads()).
struct ActorLoading {
  static constexpr std::string_view kName = "actor_loading";
  ActorId actor;
};
void describe(auto& v, ActorLoading& e) {
  v.field(1, "actor", e.actor);
}

struct Generated {
  static constexpr std::string_view kName = "generated";
  struct Item {
    LeaseId lease;
    ResponseId response;
    Tokens prompt;                          ///< Length of the prompt.
    Tokens tokens;                          ///< Sampled by this attempt.
    std::vector<actors::Segment> segments;  ///< As reported by the engine.
    actors::FinishReason finish = actors::FinishReason::End;
    bool cached = false;  ///< Interrupted: the engine keeps its KV cache.
  };
  ActorId actor;
  std::vector<Item> items;
  std::string failure{};  ///< Why one of them failed; empty: none has.
};
void describe(auto& v, Generated::Item& e) {
  v.field(1, "lease", e.lease);
  v.field(2, "response", e.response);
  v.field(3, "prompt", e.prompt);
  v.field(4, "tokens", e.tokens);
  v.field(5, "segments", e.segments);
  v.field(6, "finish", e.finish);
  v.field(7, "cached", e.cached);
}
void describe(auto& v, Generated& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "items", e.items);
  v.field(3, "failure", e.failure);
}

struct ReferenceScored {
  static constexpr std::string_view kName = "reference_scored";
  ActorId actor;
  LeaseId lease;
  std::vector<ResponseId> failed{};  ///< Responses whose scores are impossible.
  std::string failure{};             ///< Why one of them failed; empty: none has.
};
void describe(auto& v, ReferenceScored& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "lease", e.lease);
  v.field(3, "failed", e.failed);
  v.field(4, "failure", e.failure);
}

struct Judged {
  static constexpr std::string_view kName = "judged";
  struct Item {
    double reward = 0;
    bool failed = false;
  };
  ActorId actor;
  LeaseId lease;
  std::vector<Item> items;  ///< In the order of the lease's responses.
  std::string failure{};    ///< Why one of them failed; empty: none has.
  bool gave_up = false;     ///< The verifier has never returned a reward.
  /// As in actors::Judged: the scheduler ignores them, the figures of the run come from them.
  actors::TermRewards terms{};
  std::optional<actors::JudgeUsage> usage{};
};
void describe(auto& v, Judged::Item& e) {
  v.field(1, "reward", e.reward);
  v.field(2, "failed", e.failed);
}
void describe(auto& v, Judged& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "lease", e.lease);
  v.field(3, "items", e.items);
  v.field(4, "failure", e.failure);
  v.field(5, "gave_up", e.gave_up);
  v.field(6, "terms", e.terms);
  v.field(7, "usage", e.usage);
}

struct Trained {
  static constexpr std::string_view kName = "trained";
  ActorId actor;
  LeaseId lease;
  PolicyVersion version;        ///< The result.
  std::vector<GroupId> groups;  ///< As reported by the trainer.
  actors::UpdateMetrics metrics;
};
void describe(auto& v, Trained& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "lease", e.lease);
  v.field(3, "version", e.version);
  v.field(4, "groups", e.groups);
  v.field(5, "metrics", e.metrics);
}

/// Tensors of a batch no longer exist, so the trainer was not sent it: its responses `lost` are
/// generated again.
struct TensorsLost {
  static constexpr std::string_view kName = "tensors_lost";
  LeaseId lease;  ///< Of the Train or Prepare.
  std::vector<ResponseId> lost;
};
void describe(auto& v, TensorsLost& e) {
  v.field(1, "lease", e.lease);
  v.field(2, "lost", e.lost);
}

/// The gradients of a Prepare are computed.
struct Prepared {
  static constexpr std::string_view kName = "prepared";
  ActorId actor;
  LeaseId lease;
};
void describe(auto& v, Prepared& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "lease", e.lease);
}

struct WeightsStaged {
  static constexpr std::string_view kName = "weights_staged";
  ActorId actor;
  PolicyVersion version;
  std::string error;
};
void describe(auto& v, WeightsStaged& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "version", e.version);
  v.field(3, "error", e.error);
}

struct WeightsCommitted {
  static constexpr std::string_view kName = "weights_committed";
  ActorId actor;
  PolicyVersion version;
  std::string error;
};
void describe(auto& v, WeightsCommitted& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "version", e.version);
  v.field(3, "error", e.error);
}

struct Switched {
  static constexpr std::string_view kName = "switched";
  ActorId actor;
  actors::SwitchAction action = actors::SwitchAction::Interrupt;
  actors::SwitchCost cost;
  std::string error;
};
void describe(auto& v, Switched& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "action", e.action);
  v.field(3, "cost", e.cost);
  v.field(4, "error", e.error);
}

/// The checkpoint of `version` is complete on disk.
struct CheckpointSaved {
  static constexpr std::string_view kName = "checkpoint_saved";
  PolicyVersion version;
  std::string error;
};
void describe(auto& v, CheckpointSaved& e) {
  v.field(1, "version", e.version);
  v.field(2, "error", e.error);
}

/// What an actor's cards did, for the timeline. No decision depends on it.
struct Activity {
  static constexpr std::string_view kName = "activity";
  ActorId actor;
  std::vector<actors::Span> spans;
  std::optional<actors::Usage> usage{};
};
void describe(auto& v, Activity& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "spans", e.spans);
  v.field(3, "usage", e.usage);
}

/// The clock of an attached worker's host is off by `ahead`, plus or minus `error`, which differs
/// from the last reading. Its spans are corrected by it.
struct ClockRead {
  static constexpr std::string_view kName = "clock_read";
  ActorId actor;
  Duration ahead{};
  Duration error{};
};
void describe(auto& v, ClockRead& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "ahead", e.ahead);
  v.field(3, "error", e.error);
}

/// A worker of another launcher has attached for the actor. Its cards are those of this host.
struct WorkerAttached {
  static constexpr std::string_view kName = "worker_attached";
  ActorId actor;
  std::string host;  ///< The worker's name for it.
  std::int64_t pid = 0;
  std::string key{};  ///< Name of the key that it authenticated with.
};
void describe(auto& v, WorkerAttached& e) {
  v.field(1, "actor", e.actor);
  v.field(2, "host", e.host);
  v.field(3, "pid", e.pid);
  v.field(4, "key", e.key);
}

/// The user changes the number of actors of the running job.
struct Scaled {
  static constexpr std::string_view kName = "scaled";
  std::vector<ActorSpec> actors;       ///< From here on; earlier actors keep their indexes.
  std::vector<SettingChange> changes;  ///< Settings that the user changed.
};
void describe(auto& v, Scaled& e) {
  v.field(1, "actors", e.actors);
  v.field(2, "changes", e.changes);
}

/// The time of next_deadline() has passed.
struct DeadlineReached {
  static constexpr std::string_view kName = "deadline_reached";
};
TEMPER_NO_FIELDS(DeadlineReached)

/// The user requests a stop: finish the current step, save a checkpoint, end.
struct StopRequested {
  static constexpr std::string_view kName = "stop_requested";
};
TEMPER_NO_FIELDS(StopRequested)

/// The driver cannot continue (a file cannot be written, a second Ctrl-C): the run ends now.
struct Aborted {
  static constexpr std::string_view kName = "aborted";
  std::string reason;
  bool stopped = false;  ///< On the user's request.
};
void describe(auto& v, Aborted& e) {
  v.field(1, "reason", e.reason);
  v.field(2, "stopped", e.stopped);
}

}  // namespace temper::orchestrator::event

namespace temper::orchestrator {

using Event = std::variant<event::Started,
                           event::Resumed,
                           event::ActorReady,
                           event::ActorDown,
                           event::Generated,
                           event::ReferenceScored,
                           event::Judged,
                           event::Trained,
                           event::WeightsStaged,
                           event::WeightsCommitted,
                           event::Switched,
                           event::CheckpointSaved,
                           event::Activity,
                           event::DeadlineReached,
                           event::StopRequested,
                           event::Aborted,
                           event::Prepared,
                           event::ClockRead,
                           event::WorkerAttached,
                           event::Scaled,
                           event::ActorLoading,
                           event::TensorsLost>;

/// The run's configuration from this event on; null: unchanged.
const SchedulerConfig* config_in(const Event& event);
/// The run's actors from this event on, earlier ones at their indexes; null: unchanged.
const std::vector<ActorSpec>* actors_in(const Event& event);

}  // namespace temper::orchestrator
