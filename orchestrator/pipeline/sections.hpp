// The sections of a pipeline that belong to the orchestrator. Sections of other folders are
// declared there and reused by pipeline_config.hpp.
#pragma once

#include "actors/protocol/engine_config.hpp"
#include "actors/simulation/placement_mode.hpp"
#include "actors/transport/transport_config.hpp"
#include "core/describe.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "rollout/agent_config.hpp"
#include "rollout/engine.hpp"

namespace temper {
namespace orchestrator {

using actors::PlacementMode;
enum class HardwareKind { Local, Simulated };
enum class TransportKind { Ipc, Tcp };
enum class TransportSecurity { Curve, Plain };
/// How weights come to workers that attach.
enum class WeightsBy { Relay, Broadcast, Folder };
/// Who starts the workers of a role: the orchestrator, or anybody else.
enum class LaunchKind { Local, Attach };
/// Whose cards the reference uses where it has none of its own.
enum class ReferenceCards { Rollout, Trainer };

struct StalenessConfig {
  StalenessRuleKind policy = StalenessRuleKind::Exact;
  double bound = 2;
  AgeRule age = AgeRule::FirstToken;
  Admission admission = Admission::Eager;
};

/// Empty lists are filled by resolve_placement(), from the counts where those are given.
struct PlacementConfig {
  PlacementMode mode = PlacementMode::Separate;
  std::int32_t cards = 2;
  std::vector<CardId> rollout;
  std::vector<CardId> trainer;
  std::vector<CardId> reference;
  std::vector<CardId> reward;
  std::int32_t rollout_cards = 0;
  std::int32_t reference_cards = 0;
  ReferenceCards reference_on = ReferenceCards::Rollout;
  LendingRule lending = LendingRule::Auto;
  double return_share = 0.25;
  Switching switching = Switching::Together;
  double crowding = 0.25;
  Bytes card_memory{0};  ///< 0: as much as the machine has.
};

struct RolloutConfig {
  std::int32_t replicas = 1;
  std::int32_t concurrency = 128;
  rollout::OnNewWeights on_new_weights = rollout::OnNewWeights::KeepKv;
  actors::EngineConfig engine;
  rollout::AgentConfig agent;
  LaunchKind launch = LaunchKind::Local;
};

struct TrainerConfig {
  actors::EngineConfig engine;
  LaunchKind launch = LaunchKind::Local;
};

/// The sections `reference` and `reward`: how many actors there are, and whose work they do.
struct ReplicaConfig {
  std::int32_t replicas = 1;
  actors::EngineConfig engine;
  LaunchKind launch = LaunchKind::Local;
};

struct SyntheticConfig {
  Tokens tokens{256};
  Duration step_time{0};
  Bytes weights{0};
};

struct TransportSection {
  TransportKind kind = TransportKind::Ipc;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 0;
  std::string advertise;
  Duration grace = std::chrono::minutes(10);
  WeightsBy weights = WeightsBy::Relay;
  Duration relay_timeout = std::chrono::seconds(3);
  TransportSecurity security = TransportSecurity::Curve;
  Duration heartbeat = std::chrono::milliseconds(250);
  Duration heartbeat_timeout = std::chrono::seconds(3);
  std::int32_t max_restarts = 3;
  Duration restarts_forgiven_after = std::chrono::minutes(10);
  std::int32_t starts_at_once = 16;
  std::int32_t actors_per_worker = 16;
  actors::TransportConfig limits;  ///< Its fields are fields of this section.
};

struct CheckpointConfig {
  std::int32_t every = 20;
  std::int32_t keep = 2;
};

template <class V>
void describe(V& v, StalenessConfig& c) {
  v.field(1,
          "policy",
          c.policy,
          {.doc = "`exact`: no trained group is older than the bound, and none is dropped; the "
                  "others are rules of other systems, to compare with: `sync`, `aggregate`, "
                  "`count`, `drop`, `wait`, `window`, `in_order`."});
  v.field(2,
          "bound",
          c.bound,
          {.doc = "Largest number of updates between the version that began a group and the "
                  "version it trains; 0 is synchronous. `aggregate` and `count` take fractions.",
           .min = 0.0,
           .max = 1024.0});
  v.field(
      3,
      "age",
      c.age,
      {.doc = "What the bound bounds. `first_token`: the age of a group's first token; "
              "`token_weighted`: the mean age of its tokens, which is less where engines went on "
              "under newer weights."});
  v.field(4,
          "admission",
          c.admission,
          {.doc = "When a group is dispatched that the rule admits. `eager`: at once; "
                  "`just_in_time`: as late as the trainer allows, so that it begins under newer "
                  "weights; where cards take turns, their turns decide."});
}

template <class V>  // One field after the other. NOLINTNEXTLINE(readability-function-size)
void describe(V& v, PlacementConfig& c) {
  v.field(1,
          "mode",
          c.mode,
          {.doc = "`separate`: rollout and trainer have their own cards; `colocated`: they take "
                  "turns on the same ones; `fused`: so does the reference; `hybrid`: the rollout "
                  "has its own cards, and the trainer lends it its cards while it waits."});
  v.field(2,
          "cards",
          c.cards,
          {.doc = "Cards to use, numbered from 0: cores of this machine, or cards of the simulated "
                  "cluster.",
           .min = 1,
           .max = 4096});
  v.field(3,
          "rollout",
          c.rollout,
          {.doc = "Cards of the rollout; empty: chosen for the mode.", .example = "[0]"});
  v.field(4, "trainer", c.trainer, {.doc = "Cards of the trainer; empty: chosen for the mode."});
  v.field(
      5, "reference", c.reference, {.doc = "Cards of the reference; empty: those of the rollout."});
  v.field(
      6,
      "reward",
      c.reward,
      {.doc = "Cards of the reward; empty: those of the rollout, or on simulated hardware none: "
              "it runs on the hosts."});
  v.field(7,
          "rollout_cards",
          c.rollout_cards,
          {.doc = "Instead of lists: the rollout has the first so many cards, the trainer what is "
                  "left; 0: half.",
           .min = 0});
  v.field(8,
          "reference_cards",
          c.reference_cards,
          {.doc = "Instead of a list: the reference has so many cards of its own, behind those of "
                  "the rollout.",
           .min = 0});
  v.field(9,
          "reference_on",
          c.reference_on,
          {.doc = "Whose cards a reference without its own shares: `rollout` or `trainer`."});
  v.field(10,
          "lending",
          c.lending,
          {.doc = "hybrid: lend while the trainer waits if it pays for the switch (`auto`), or "
                  "`always`."});
  v.field(11,
          "return_share",
          c.return_share,
          {.doc = "colocated, fused: cards go back to training once a batch is ready, nothing new "
                  "may be dispatched, and at most this share of all slots (rollout.concurrency) "
                  "still generates; 0 lets every response finish.",
           .min = 0.0,
           .max = 1.0});
  v.field(12,
          "switching",
          c.switching,
          {.doc = "colocated, fused: all cards change role `together`, or `one_by_one`: the cards "
                  "of engines "
                  "with little to do go to scoring and training, others go on generating. "
                  "Simulated hardware."});
  v.field(13,
          "crowding",
          c.crowding,
          {.doc = "one_by_one: engines give up their cards as long as the others have at most this "
                  "share of their slots in use.",
           .min = 0.01,
           .max = 1.0});
  v.field(14,
          "card_memory",
          c.card_memory,
          {.doc = "Local hardware: most memory that the actors of a card may hold, by the ledger "
                  "before the run and by their processes during it; 0: no limit. An actor of "
                  "several cards counts evenly on each.",
           .min = Bytes(0)});
}

/// The key `launch` of a role's section.
template <class V>
void describe_launch(V& v, LaunchKind& launch) {
  v.field(30,
          "launch",
          launch,
          {.doc = "Who starts its workers. `local`: this run, on this machine; `attach`: anyone, "
                  "anywhere (docs/many-machines.md); they are waited for."});
}

template <class V>
void describe(V& v, RolloutConfig& c) {
  v.field(1,
          "replicas",
          c.replicas,
          {.doc = "Rollout processes; each has its share of the cards.", .min = 1, .max = 4096});
  v.field(2,
          "concurrency",
          c.concurrency,
          {.doc = "Responses in flight per replica.", .min = 1, .max = 1 << 20});
  v.field(20,
          "on_new_weights",
          c.on_new_weights,
          {.doc = "What running responses go on with: the keys and values they have, or ones "
                  "computed again, so that every token is of one version's policy."});
  v.field(21, "engine", c.engine, {.doc = "Who generates."});
  v.field(22, "agent", c.agent, {.doc = "Who plays responses of several turns (docs/agents.md)."});
  describe_launch(v, c.launch);
}

template <class V>
void describe(V& v, TrainerConfig& c) {
  v.field(1, "engine", c.engine, {.doc = "Who trains."});
  describe_launch(v, c.launch);
}

template <class V>
void describe(V& v, ReplicaConfig& c) {
  v.field(1,
          "replicas",
          c.replicas,
          {.doc = "Processes of this role; the reference may have none where `algorithm.kl` is 0.",
           .min = 0,
           .max = 4096});
  v.field(2, "engine", c.engine, {.doc = "Who does the work."});
  describe_launch(v, c.launch);
}

template <class V>
void describe(V& v, SyntheticConfig& c) {
  v.field(1,
          "tokens",
          c.tokens,
          {.doc = "Length of every response.", .min = Tokens(1), .max = Tokens(1 << 20)});
  v.field(2,
          "step_time",
          c.step_time,
          {.doc = "Time of one decode step and of one update.", .min = Duration(0)});
  v.field(3,
          "weights",
          c.weights,
          {.doc = "Size of a version's weights; 0: a line of text.",
           .min = Bytes(0),
           .max = Bytes(Bytes::rep{1} << 36)});
}

/// What concerns workers that others start.
template <class V>
void describe_attached(V& v, TransportSection& c) {
  v.field(20,
          "advertise",
          c.advertise,
          {.doc = "tcp: host that attached workers connect to; empty: that of `bind`, or this "
                  "machine's name where it listens on all addresses."});
  v.field(21,
          "grace",
          c.grace,
          {.doc = "How long an attached worker whose orchestrator is lost keeps what it has loaded "
                  "and looks for its successor.",
           .min = std::chrono::seconds(0)});
  v.field(
      22,
      "weights",
      c.weights,
      {.doc = "How weights come to engines that attach. `relay`: images of more than 1 MiB from "
              "engine to engine, one copy over each host's link; `broadcast`: to each from the "
              "orchestrator; `folder`: as files in the run's folder, which all hosts see."});
  v.field(23,
          "relay_timeout",
          c.relay_timeout,
          {.doc = "relay: an engine that has heard nothing for so long from the one that feeds it "
                  "asks that one's feeder, and then the orchestrator, for the rest.",
           .min = std::chrono::seconds(1)});
}

template <class V>
void describe(V& v, TransportSection& c) {
  v.field(10,
          "kind",
          c.kind,
          {.doc = "`ipc`: sockets of this machine; `tcp`: workers may be elsewhere."});
  v.field(11, "bind", c.bind, {.doc = "tcp: address to listen on."});
  v.field(12, "port", c.port, {.doc = "tcp: port to listen on; 0 takes any free one."});
  describe_attached(v, c);
  v.field(13,
          "heartbeat",
          c.heartbeat,
          {.doc = "Interval at which both sides show life.", .min = std::chrono::milliseconds(1)});
  v.field(14,
          "heartbeat_timeout",
          c.heartbeat_timeout,
          {.doc = "Silence after which an actor is given up and replaced.",
           .min = std::chrono::milliseconds(10)});
  v.field(15,
          "max_restarts",
          c.max_restarts,
          {.doc = "Replacements of one actor in a row before the run gives up. They are forgiven "
                  "when a checkpoint finds the actor at work, and after "
                  "`restarts_forgiven_after`.",
           .min = 0,
           .max = 1000});
  v.field(17,
          "restarts_forgiven_after",
          c.restarts_forgiven_after,
          {.doc = "An actor that was at work for so long begins to count anew.",
           .min = std::chrono::seconds(1)});
  v.field(18,
          "starts_at_once",
          c.starts_at_once,
          {.doc = "Most actors that start at the same time; others wait for their turn.",
           .min = 1,
           .max = 4096});
  v.field(
      16,
      "actors_per_worker",
      c.actors_per_worker,
      {.doc = "Simulated hardware: actors that share one worker process.", .min = 1, .max = 1024});
  v.field(
      19,
      "security",
      c.security,
      {.doc = "tcp: `curve` encrypts, and only the workers that were started for the run get in; "
              "`plain` is only possible on an address of this machine."});
  describe(v, c.limits);  // Field numbers 1 to 9.
}

template <class V>
void describe(V& v, CheckpointConfig& c) {
  v.field(1,
          "every",
          c.every,
          {.doc = "Updates between two checkpoints; 0: only one at the end.", .min = 0});
  v.field(2, "keep", c.keep, {.doc = "Newest checkpoints kept.", .min = 1, .max = 10000});
}

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::HardwareKind> {
  using H = orchestrator::HardwareKind;
  static constexpr std::array<std::pair<H, std::string_view>, 2> value{
      {{H::Local, "local"}, {H::Simulated, "simulated"}}};
};
template <>
struct EnumNames<orchestrator::PlacementMode> {
  using M = orchestrator::PlacementMode;
  static constexpr std::array<std::pair<M, std::string_view>, 4> value{{{M::Separate, "separate"},
                                                                        {M::Colocated, "colocated"},
                                                                        {M::Fused, "fused"},
                                                                        {M::Hybrid, "hybrid"}}};
};
template <>
struct EnumNames<orchestrator::ReferenceCards> {
  using R = orchestrator::ReferenceCards;
  static constexpr std::array<std::pair<R, std::string_view>, 2> value{
      {{R::Rollout, "rollout"}, {R::Trainer, "trainer"}}};
};
template <>
struct EnumNames<orchestrator::TransportKind> {
  using K = orchestrator::TransportKind;
  static constexpr std::array<std::pair<K, std::string_view>, 2> value{
      {{K::Ipc, "ipc"}, {K::Tcp, "tcp"}}};
};
template <>
struct EnumNames<orchestrator::LaunchKind> {
  using L = orchestrator::LaunchKind;
  static constexpr std::array<std::pair<L, std::string_view>, 2> value{
      {{L::Local, "local"}, {L::Attach, "attach"}}};
};
template <>
struct EnumNames<orchestrator::TransportSecurity> {
  using S = orchestrator::TransportSecurity;
  static constexpr std::array<std::pair<S, std::string_view>, 2> value{
      {{S::Curve, "curve"}, {S::Plain, "plain"}}};
};
template <>
struct EnumNames<orchestrator::WeightsBy> {
  using W = orchestrator::WeightsBy;
  static constexpr std::array<std::pair<W, std::string_view>, 3> value{
      {{W::Relay, "relay"}, {W::Broadcast, "broadcast"}, {W::Folder, "folder"}}};
};

}  // namespace temper
