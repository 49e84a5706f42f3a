// Messages of an actor's life: registration, heartbeats, activity, stopping.
#pragma once

#include "actors/protocol/envelope.hpp"
#include "actors/protocol/relay_address.hpp"
#include "actors/protocol/role_config.hpp"
#include "actors/protocol/usage.hpp"

namespace temper {
namespace actors {

/// Exclusive states of a card (docs/semantics.md, section 5.1), busy ones first. No actor says
/// Evaluate: it is what became of decode, prefill and reward for an evaluation.
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
  Evaluate
};

/// The first message of a worker.
struct Hello {
  static constexpr std::string_view kName = "actor.hello";
  static constexpr std::uint32_t kTag = 1, kVersion = 1, kOldestVersion = 1;
  std::uint32_t protocol = kProtocolVersion;
  std::string name;    ///< The slot it was started for, e.g. "rollout-0"; attached: its place.
  std::string secret;  ///< What the orchestrator gave it at launch.
  std::int64_t pid = 0;
  std::string host;
  bool attached = false;          ///< Nobody of this run started it.
  std::string was;                ///< The slot that it had under an earlier orchestrator.
  std::string run;                ///< Of its key.
  std::uint64_t incarnation = 0;  ///< Of the orchestrator that it knew last.
  RelayAddress relay{};
};
template <class V>
void describe(V& v, Hello& m) {
  v.field(1, "protocol", m.protocol, {.doc = "Protocol version; must equal the orchestrator's."});
  v.field(2,
          "name",
          m.name,
          {.doc = "Actor slot, e.g. `rollout-0`. Attached also a role (`rollout`: a free slot of "
                  "it), `any` (a free slot), or `#` and a rank (that attached slot, from 0, or "
                  "else a free one)."});
  v.field(3, "secret", m.secret, {.doc = "Launch secret of the run."});
  v.field(4, "pid", m.pid, {.doc = "Process id on its host."});
  v.field(5, "host", m.host, {.doc = "Host name."});
  v.field(6, "attached", m.attached, {.doc = "It was not started by the orchestrator."});
  v.field(7,
          "was",
          m.was,
          {.doc = "Attached: the slot that it had before, which it is given again if it is free."});
  v.field(8, "run", m.run, {.doc = "Attached: the run that its key is of."});
  v.field(9,
          "incarnation",
          m.incarnation,
          {.doc = "Attached: of the orchestrator that it knew last; 0: it knew none."});
  v.field(10, "relay", m.relay, {.doc = "Attached: where it passes weights on to others."});
}

/// Accepts a worker and tells it all it needs to be its role.
struct Welcome {
  static constexpr std::string_view kName = "actor.welcome";
  static constexpr std::uint32_t kTag = 2, kVersion = 1, kOldestVersion = 1;
  ActorId actor;
  RoleConfig role;
  std::int64_t epoch_monotonic_ns = 0;
  Duration heartbeat{};
  Duration heartbeat_timeout{};
  std::string name;               ///< Its slot.
  std::string run;                ///< Of attached workers, as the following.
  std::uint64_t incarnation = 0;  ///< How often the run was begun or resumed.
  Time now{};                     ///< On the run's clock.
  Duration grace{};
  Duration relay_timeout{};
};
template <class V>
void describe(V& v, Welcome& m) {
  v.field(1, "actor", m.actor, {.doc = "Its id in this run."});
  v.field(2, "role", m.role, {.doc = "Role, cards and engine settings."});
  v.field(3,
          "epoch_monotonic_ns",
          m.epoch_monotonic_ns,
          {.doc = "Time zero of the run (CLOCK_MONOTONIC)."});
  v.field(4, "heartbeat", m.heartbeat, {.doc = "Interval at which both sides show life."});
  v.field(5,
          "heartbeat_timeout",
          m.heartbeat_timeout,
          {.doc = "Silence after which a side gives the other up."});
  v.field(6, "name", m.name, {.doc = "Its slot."});
  v.field(7, "run", m.run, {.doc = "Attached: the run."});
  v.field(
      8,
      "incarnation",
      m.incarnation,
      {.doc = "Attached: counts the orchestrators of the run; the one with the highest is it."});
  v.field(9,
          "now",
          m.now,
          {.doc = "Attached: the run's clock when this was sent. The worker takes it for its own, "
                  "in place of `epoch_monotonic_ns`, which is of another host."});
  v.field(10,
          "grace",
          m.grace,
          {.doc = "Attached: how long it keeps what it has loaded, and looks for a successor, once "
                  "this orchestrator is silent."});
  v.field(11,
          "relay_timeout",
          m.relay_timeout,
          {.doc = "Attached: after so long a silence of a worker that it has asked for weights it "
                  "asks the next."});
}

/// Refuses a worker; it exits with the reason, unless it may come again.
struct Reject {
  static constexpr std::string_view kName = "actor.reject";
  static constexpr std::uint32_t kTag = 3, kVersion = 1, kOldestVersion = 1;
  std::string reason;
  bool again = false;
};
template <class V>
void describe(V& v, Reject& m) {
  v.field(1, "reason", m.reason, {.doc = "Why, and what to do."});
  v.field(2,
          "again",
          m.again,
          {.doc = "Attached: there is no place now. It is let go if it had one, and may say "
                  "actor.hello again, every second."});
}

/// The role is built and can take work.
struct Ready {
  static constexpr std::string_view kName = "actor.ready";
  static constexpr std::uint32_t kTag = 4, kVersion = 1, kOldestVersion = 1;
};
TEMPER_NO_FIELDS(Ready)

/// Which heartbeat a worker heard last.
struct HeartbeatAnswer {
  Time sent{};
  Duration held{};
};
template <class V>
void describe(V& v, HeartbeatAnswer& a) {
  v.field(1, "sent", a.sent, {.doc = "As that one has it."});
  v.field(2, "held", a.held, {.doc = "How long before this one it was heard."});
}

/// A sign of life, in both directions.
struct Heartbeat {
  static constexpr std::string_view kName = "actor.heartbeat";
  static constexpr std::uint32_t kTag = 5, kVersion = 1, kOldestVersion = 1;
  Bytes resident;
  Time sent{};  ///< On the clock of its sender.
  std::optional<HeartbeatAnswer> answers{};
  bool loading = false;  ///< Of a worker whose role is not there yet: it gets on with it.
};
template <class V>
void describe(V& v, Heartbeat& m) {
  v.field(1, "resident", m.resident, {.doc = "Resident memory of the process."});
  v.field(
      2,
      "sent",
      m.sent,
      {.doc = "When it was sent: a worker's on the run's clock as it has it, the orchestrator's "
              "on one of its own."});
  v.field(
      3,
      "answers",
      m.answers,
      {.doc = "Of a worker: the heartbeat that it heard last. From these the orchestrator knows "
              "how far the worker's clock is off."});
  v.field(4,
          "loading",
          m.loading,
          {.doc = "Of a worker that does not take work yet: it has used processor time, has read "
                  "from a disk, or waits for something under a deadline of its own, since its last "
                  "heartbeat. `deadlines.start` counts anew."});
}

/// How much of what was sent in large frames has arrived: its sender keeps at most so many bytes on
/// the way (actors/transport/stream.hpp).
struct Taken {
  static constexpr std::string_view kName = "actor.taken";
  static constexpr std::uint32_t kTag = 9, kVersion = 1, kOldestVersion = 1;
  std::uint64_t bytes = 0;
};
template <class V>
void describe(V& v, Taken& m) {
  v.field(1, "bytes", m.bytes, {.doc = "Bytes in bodies of 64 KiB or more, since the beginning."});
}

/// What an actor did with its cards.
struct Span {
  CardState state = CardState::Idle;
  Time begin{};
  Time end{};
  bool operator==(const Span&) const = default;
};
template <class V>
void describe(V& v, Span& s) {
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
template <class V>
void describe(V& v, Activity& m) {
  v.field(1, "spans", m.spans, {.doc = "Busy spans since the last report, in order."});
  v.field(2, "usage", m.usage, {.doc = "Now and then: what it has used since its start."});
}

/// The actor cannot go on; it exits after this.
struct Failed {
  static constexpr std::string_view kName = "actor.failed";
  static constexpr std::uint32_t kTag = 7, kVersion = 1, kOldestVersion = 1;
  std::string reason;
  bool permanent = false;
};
template <class V>
void describe(V& v, Failed& m) {
  v.field(1, "reason", m.reason, {.doc = "What failed."});
  v.field(2,
          "permanent",
          m.permanent,
          {.doc = "Another start would fail in the same way: a class that is not there, a model "
                  "folder that is refused. At the first start of an actor it ends the run."});
}

/// An attached worker goes in order: after actor.stop, or because who started it ended it.
struct Left {
  static constexpr std::string_view kName = "actor.left";
  static constexpr std::uint32_t kTag = 10, kVersion = 1, kOldestVersion = 1;
  std::string reason;
};
template <class V>
void describe(V& v, Left& m) {
  v.field(1, "reason", m.reason, {.doc = "Why it goes; nothing comes from it after this."});
}

/// Finish what is under way, flush, exit.
struct Stop {
  static constexpr std::string_view kName = "actor.stop";
  static constexpr std::uint32_t kTag = 8, kVersion = 1, kOldestVersion = 1;
};
TEMPER_NO_FIELDS(Stop)

}  // namespace actors

template <>
struct EnumNames<actors::CardState> {
  using S = actors::CardState;
  static constexpr std::array<std::pair<S, std::string_view>, 13> value{
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
       {S::Evaluate, "evaluate"}}};
};

}  // namespace temper
