// Messages of an actor's lifecycle: registration, heartbeats, activity, stopping.
#pragma once

#include "actors/protocol/envelope.hpp"
#include "actors/protocol/relay_address.hpp"
#include "actors/protocol/role_config.hpp"
#include "actors/protocol/usage.hpp"

namespace temper {
namespace actors {

/// Mutually exclusive states of a card (docs/explanation/measures.md, section 5.1), busy states
/// first. Actors never report Evaluate: the orchestrator derives it from decode, prefill and reward
/// spans of an evaluation.
enum class CardState {
  Train,
  Decode,
  Prefill,
  Reference,
  Reward,
  WeightSync,
  Switch,
  WaitData,
  WaitWeights,
  WaitQuota,
  Idle,
  Down,
  Evaluate,
  WaitTools
};

/// The first message of a worker.
struct Hello {
  static constexpr std::string_view kName = "actor.hello";
  static constexpr std::uint32_t kTag = 1, kVersion = 1, kOldestVersion = 1;
  std::uint32_t protocol = kProtocolVersion;
  std::string name;    ///< The slot it was started for, e.g. "rollout-0"; attached: the place it
                       ///< requests.
  std::string secret;  ///< The run's launch secret.
  std::int64_t pid = 0;
  std::string host;
  bool attached = false;          ///< Not started by this run.
  std::string was;                ///< Its slot under an earlier orchestrator.
  std::string run;                ///< The run of its key.
  std::uint64_t incarnation = 0;  ///< Incarnation of the orchestrator that it last served; 0: none.
  RelayAddress relay{};
};
void describe(auto& v, Hello& m) {
  v.field(1, "protocol", m.protocol, {.doc = "Protocol version; must equal the orchestrator's."});
  v.field(
      2,
      "name",
      m.name,
      {.doc = "Actor slot, e.g. `rollout-0`. Attached: also a role (`rollout`: any free slot of "
              "it), `any` (any free slot), or `#` and a rank (the attached slot with this number, "
              "from 0, "
              "or any free one)."});
  v.field(3, "secret", m.secret, {.doc = "Launch secret of the run."});
  v.field(4, "pid", m.pid, {.doc = "Process id on its host."});
  v.field(5, "host", m.host, {.doc = "Host name."});
  v.field(
      6, "attached", m.attached, {.doc = "True if the orchestrator did not start this worker."});
  v.field(
      7, "was", m.was, {.doc = "Attached: its previous slot, which it gets again if it is free."});
  v.field(8, "run", m.run, {.doc = "Attached: the run of its key."});
  v.field(9,
          "incarnation",
          m.incarnation,
          {.doc = "Attached: incarnation of the orchestrator that it last served; 0: none."});
  v.field(
      10, "relay", m.relay, {.doc = "Attached: where other workers can fetch weights from it."});
}

/// Accepts a worker and gives it everything it needs to run its role.
struct Welcome {
  static constexpr std::string_view kName = "actor.welcome";
  static constexpr std::uint32_t kTag = 2, kVersion = 1, kOldestVersion = 1;
  ActorId actor;
  RoleConfig role;
  std::int64_t epoch_monotonic_ns = 0;
  Duration heartbeat{};
  Duration heartbeat_timeout{};
  std::string name;               ///< Its slot.
  std::string run;                ///< This and the following fields: attached workers only.
  std::uint64_t incarnation = 0;  ///< Number of times the run was started or resumed.
  Time now{};                     ///< On the run's clock.
  Duration grace{};
  Duration relay_timeout{};
};
void describe(auto& v, Welcome& m) {
  v.field(1, "actor", m.actor, {.doc = "Its id in this run."});
  v.field(2, "role", m.role, {.doc = "Role, cards and engine settings."});
  v.field(3,
          "epoch_monotonic_ns",
          m.epoch_monotonic_ns,
          {.doc = "Time zero of the run (CLOCK_MONOTONIC)."});
  v.field(4, "heartbeat", m.heartbeat, {.doc = "Interval at which both sides send heartbeats."});
  v.field(5,
          "heartbeat_timeout",
          m.heartbeat_timeout,
          {.doc = "Silence after which a side considers the other lost."});
  v.field(6, "name", m.name, {.doc = "Its slot."});
  v.field(7, "run", m.run, {.doc = "Attached: the run."});
  v.field(8,
          "incarnation",
          m.incarnation,
          {.doc = "Attached: number of this orchestrator of the run; the highest number is the "
                  "current one."});
  v.field(
      9,
      "now",
      m.now,
      {.doc = "Attached: the run's clock when this was sent. The worker uses it as its own clock "
              "instead of `epoch_monotonic_ns`, which is valid on another host only."});
  v.field(
      10,
      "grace",
      m.grace,
      {.doc = "Attached: how long it keeps its loaded state and looks for a new orchestrator once "
              "this orchestrator is silent."});
  v.field(11,
          "relay_timeout",
          m.relay_timeout,
          {.doc = "Attached: how long a worker that was asked for weights may be silent before the "
                  "next one is asked."});
}

/// Rejects a worker. It exits with the reason unless it may try again.
struct Reject {
  static constexpr std::string_view kName = "actor.reject";
  static constexpr std::uint32_t kTag = 3, kVersion = 1, kOldestVersion = 1;
  std::string reason;
  bool again = false;
};
void describe(auto& v, Reject& m) {
  v.field(1, "reason", m.reason, {.doc = "Why, and what to do."});
  v.field(2,
          "again",
          m.again,
          {.doc = "Attached: there is no free place now. The worker loses its place if it had one, "
                  "and may send "
                  "actor.hello again every second."});
}

/// The role is ready for work.
struct Ready {
  static constexpr std::string_view kName = "actor.ready";
  static constexpr std::uint32_t kTag = 4, kVersion = 1, kOldestVersion = 1;
};
TEMPER_NO_FIELDS(Ready)

/// The heartbeat that a worker received last.
struct HeartbeatAnswer {
  Time sent{};
  Duration held{};
};
void describe(auto& v, HeartbeatAnswer& a) {
  v.field(1, "sent", a.sent, {.doc = "The `sent` of that heartbeat."});
  v.field(2, "held", a.held, {.doc = "Time between its arrival and this heartbeat."});
}

/// A sign of life, in both directions.
struct Heartbeat {
  static constexpr std::string_view kName = "actor.heartbeat";
  static constexpr std::uint32_t kTag = 5, kVersion = 1, kOldestVersion = 1;
  Bytes resident;
  Time sent{};  ///< On the sender's clock.
  std::optional<HeartbeatAnswer> answers{};
  bool loading = false;  ///< From a worker that is still loading: it has made progress.
};
void describe(auto& v, Heartbeat& m) {
  v.field(1, "resident", m.resident, {.doc = "Resident memory of the process."});
  v.field(2,
          "sent",
          m.sent,
          {.doc = "When it was sent. From a worker: on its copy of the run's clock; from the "
                  "orchestrator: "
                  "on a clock of its own."});
  v.field(3,
          "answers",
          m.answers,
          {.doc = "From a worker: the heartbeat that it received last. The orchestrator uses it to "
                  "compute "
                  "the offset of the worker's clock."});
  v.field(4,
          "loading",
          m.loading,
          {.doc = "From a worker that is not ready yet: since its last heartbeat it has used "
                  "processor time, read "
                  "from a disk, or waited for something under a deadline of its own. This restarts "
                  "`deadlines.start`."});
}

/// Acknowledges bytes received in large frames; the sender limits the bytes in flight
/// (actors/transport/stream.hpp).
struct Taken {
  static constexpr std::string_view kName = "actor.taken";
  static constexpr std::uint32_t kTag = 9, kVersion = 1, kOldestVersion = 1;
  std::uint64_t bytes = 0;
};
void describe(auto& v, Taken& m) {
  v.field(1, "bytes", m.bytes, {.doc = "Bytes received so far in bodies of 64 KiB or more."});
}

/// What an actor's cards did during one time span.
struct Span {
  CardState state = CardState::Idle;
  Time begin{};
  Time end{};
  bool operator==(const Span&) const = default;
};
void describe(auto& v, Span& s) {
  v.field(1, "state", s.state, {.doc = "State of the actor's cards."});
  v.field(2, "begin", s.begin, {.doc = "Start, on the run's clock."});
  v.field(3, "end", s.end, {.doc = "End, on the run's clock."});
}
struct Activity {
  static constexpr std::string_view kName = "actor.activity";
  static constexpr std::uint32_t kTag = 6, kVersion = 1, kOldestVersion = 1;
  std::vector<Span> spans;
  std::optional<Usage> usage{};
};
void describe(auto& v, Activity& m) {
  v.field(1, "spans", m.spans, {.doc = "Busy spans since the last report, in order."});
  v.field(
      2, "usage", m.usage, {.doc = "Sent occasionally: cumulative usage since the actor started."});
}

/// The actor has failed and exits after this message.
struct Failed {
  static constexpr std::string_view kName = "actor.failed";
  static constexpr std::uint32_t kTag = 7, kVersion = 1, kOldestVersion = 1;
  std::string reason;
  bool permanent = false;
  bool not_finite = false;
};
void describe(auto& v, Failed& m) {
  v.field(1, "reason", m.reason, {.doc = "What failed."});
  v.field(2,
          "permanent",
          m.permanent,
          {.doc = "A restart would fail in the same way: a missing class, a rejected model "
                  "folder. At the first start of an actor this ends the run."});
  v.field(3,
          "not_finite",
          m.not_finite,
          {.doc = "A loss, gradient, weight or logit was infinite or NaN. This raises the alarm "
                  "`not_finite`."});
}

/// An attached worker leaves in an orderly way: after actor.stop, or because it was terminated.
struct Left {
  static constexpr std::string_view kName = "actor.left";
  static constexpr std::uint32_t kTag = 10, kVersion = 1, kOldestVersion = 1;
  std::string reason;
};
void describe(auto& v, Left& m) {
  v.field(1, "reason", m.reason, {.doc = "Why it leaves. It sends nothing after this."});
}

/// Finish the current work, flush, and exit.
struct Stop {
  static constexpr std::string_view kName = "actor.stop";
  static constexpr std::uint32_t kTag = 8, kVersion = 1, kOldestVersion = 1;
};
TEMPER_NO_FIELDS(Stop)

}  // namespace actors

template <>
struct EnumNames<actors::CardState> {
  using S = actors::CardState;
  static constexpr std::array<std::pair<S, std::string_view>, 14> value{
      {{S::Train, "train"},
       {S::Decode, "decode"},
       {S::Prefill, "prefill"},
       {S::Reference, "reference"},
       {S::Reward, "reward"},
       {S::WeightSync, "weight-sync"},
       {S::Switch, "switch"},
       {S::WaitData, "wait-data"},
       {S::WaitWeights, "wait-weights"},
       {S::WaitQuota, "wait-quota"},
       {S::Idle, "idle"},
       {S::Down, "down"},
       {S::Evaluate, "evaluate"},
       {S::WaitTools, "wait-tools"}}};
};

}  // namespace temper
