// Sections of a pipeline configuration that belong to the orchestrator. docs/reference/config.md is
// generated from the texts here. Sections of other modules are declared there and combined in
// pipeline_config.hpp.
#pragma once

#include "actors/protocol/engine_config.hpp"
#include "actors/protocol/placement_mode.hpp"
#include "actors/transport/transport_config.hpp"
#include "core/describe.hpp"
#include "orchestrator/scheduler/state/settings.hpp"
#include "rollout/agent_config.hpp"
#include "rollout/engine.hpp"

namespace temper {
namespace orchestrator {

using actors::PlacementMode;
enum class HardwareKind { Local, Simulated };
enum class TransportKind { Ipc, Tcp };
enum class TransportSecurity { Curve, Plain };
/// How weights reach attached rollout engines.
enum class WeightsBy { Relay, Broadcast, Folder };
/// Who starts the workers of a role: the orchestrator, or someone else (attached workers).
enum class LaunchKind { Local, Attach };
/// Whose devices the reference shares when it has none of its own.
enum class ReferenceCards { Rollout, Trainer };

struct StalenessConfig {
  StalenessRuleKind rule = StalenessRuleKind::Exact;
  double bound = 2;
  AgeRule age = AgeRule::FirstToken;
  Admission admission = Admission::Eager;
};

/// As written in the file; resolve_placement() fills the empty lists.
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
  double crowding = 0.2;
  Bytes card_memory{0};  ///< 0: no limit.
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

struct RewardConfig {
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
  actors::TransportConfig limits;  ///< Its keys appear in this section.
};

struct CheckpointConfig {
  std::int32_t every = 20;
  std::int32_t keep = 2;
};

void describe(auto& v, StalenessConfig& c) {
  v.field(1,
          "rule",
          c.rule,
          {.doc = "Staleness rule. `exact` never trains a group older than `bound` and never drops "
                  "one. The others reproduce the rules of other systems for comparison "
                  "(docs/explanation/staleness.md)."});
  v.field(
      2,
      "bound",
      c.bound,
      {.doc = "Largest age of a trained group, in steps: the version the trainer steps from minus "
              "the version that began the group. 0 is synchronous training. Must be an integer, "
              "except for `aggregate` and `count`; 0 for `sync`; at least 1 for `drop`.",
       .min = 0.0,
       .max = 1024.0});
  v.field(3,
          "age",
          c.age,
          {.doc = "How the age of a group is measured. `first_token`: from the version that "
                  "sampled its first token; `token_weighted`: from the mean version of its tokens, "
                  "which is a smaller age if engines received new weights while they generated."});
  v.field(4,
          "admission",
          c.admission,
          {.doc = "When an admissible group is dispatched. `eager`: at once; `just_in_time`: as "
                  "late as possible without delaying the trainer, so that the group starts from "
                  "newer weights. On time-shared cards, the switch of roles decides."});
}

// One field after the other. NOLINTNEXTLINE(readability-function-size)
void describe(auto& v, PlacementConfig& c) {
  static const std::string modes =
      doc_of_rows("How roles share devices. ", actors::kPlacementModes);
  v.field(1, "mode", c.mode, {.doc = modes});
  v.field(2,
          "cards",
          c.cards,
          {.doc = "Number of devices, numbered from 0: CPU cores of this machine (`hardware: "
                  "local`) or cards of the simulated cluster.",
           .min = 1,
           .max = 1 << 17});
  v.field(3,
          "rollout",
          c.rollout,
          {.doc = "Device numbers of the rollout. Empty: chosen for the mode.", .example = "[0]"});
  v.field(4,
          "trainer",
          c.trainer,
          {.doc = "Device numbers of the trainer. Empty: chosen for the mode."});
  v.field(5,
          "reference",
          c.reference,
          {.doc = "Device numbers of the reference. Empty: shared, see `reference_on`."});
  v.field(6,
          "reward",
          c.reward,
          {.doc = "Device numbers of the reward actors. Empty: those of the rollout; on simulated "
                  "hardware none, because verifiers run on the hosts."});
  v.field(7,
          "rollout_cards",
          c.rollout_cards,
          {.doc = "Alternative to lists: number of devices of the rollout, counted from 0; the "
                  "trainer gets the rest. 0: half of them.",
           .min = 0});
  v.field(8,
          "reference_cards",
          c.reference_cards,
          {.doc = "Alternative to a list: number of exclusive devices of the reference, which "
                  "follow those of the rollout. 0: the reference shares devices.",
           .min = 0});
  v.field(9,
          "reference_on",
          c.reference_on,
          {.doc = "Whose devices the reference shares when it has none of its own."});
  v.field(10,
          "lending",
          c.lending,
          {.doc = "hybrid: when the waiting trainer lends its devices. `auto`: only if the "
                  "predicted gain exceeds the cost of the switch; `always`: every time."});
  v.field(11,
          "return_share",
          c.return_share,
          {.doc = "colocated, fused: devices return to training once a batch is ready, nothing "
                  "more can be dispatched, and at most this share of all slots "
                  "(`rollout.concurrency`) still generates. The remaining responses are "
                  "interrupted and resumed later. 0 lets every response finish first.",
           .min = 0.0,
           .max = 1.0});
  v.field(12,
          "switching",
          c.switching,
          {.doc = "colocated, fused: `together` switches all devices at once; `one_by_one` moves "
                  "the devices of nearly idle engines to scoring and training while the other "
                  "engines keep generating (simulated hardware only)."});
  v.field(13,
          "crowding",
          c.crowding,
          {.doc = "one_by_one: how full the remaining engines may get for a part of a batch, as a "
                  "share of their slots. Larger: the trainer gets more devices, and decoding slows "
                  "down.",
           .min = 0.01,
           .max = 1.0});
  v.field(14,
          "card_memory",
          c.card_memory,
          {.doc = "Local hardware: memory limit of each device. Temper checks it against the "
                  "predicted memory before the run, and against the processes during the run. An "
                  "actor on several devices counts evenly on each. 0: no limit.",
           .min = Bytes(0)});
}

/// The key `launch`, shared by the sections of all roles.
void describe_launch(auto& v, LaunchKind& launch) {
  v.field(
      30,
      "launch",
      launch,
      {.doc =
           "Who starts the workers of this role. `local`: Temper, on this machine; "
           "`attach`: you, on any machine (docs/how-to/many-machines.md); Temper waits for them."});
}

void describe(auto& v, RolloutConfig& c) {
  v.field(1,
          "replicas",
          c.replicas,
          {.doc = "Number of rollout engines. The rollout's devices are divided among them.",
           .min = 1,
           .max = 4096});
  v.field(2,
          "concurrency",
          c.concurrency,
          {.doc = "Largest number of responses in flight per engine.", .min = 1, .max = 1 << 20});
  v.field(20,
          "on_new_weights",
          c.on_new_weights,
          {.doc = "What happens to running responses when new weights arrive. `keep_kv`: they "
                  "continue with their KV cache, so later tokens depend on keys and values of "
                  "older weights; `recompute`: it is recomputed, so every token is sampled from "
                  "one version's policy; `finish`: they end under the weights that began them."});
  v.field(21, "engine", c.engine, {.doc = "The rollout engine."});
  v.field(22,
          "agent",
          c.agent,
          {.doc = "Program that plays multi-turn episodes (docs/how-to/agents.md)."});
  describe_launch(v, c.launch);
}

void describe(auto& v, TrainerConfig& c) {
  v.field(1, "engine", c.engine, {.doc = "The training engine."});
  describe_launch(v, c.launch);
}

void describe(auto& v, RewardConfig& c) {
  v.field(
      1, "replicas", c.replicas, {.doc = "Number of actors of this role.", .min = 1, .max = 4096});
  v.field(2, "engine", c.engine, {.doc = "The engine of this role."});
  describe_launch(v, c.launch);
}

void describe(auto& v, SyntheticConfig& c) {
  v.field(
      1,
      "tokens",
      c.tokens,
      {.doc = "Length of every response, in tokens.", .min = Tokens(1), .max = Tokens(1 << 20)});
  v.field(2,
          "step_time",
          c.step_time,
          {.doc = "Wall time of one decode step, and of one training step.", .min = Duration(0)});
  v.field(3,
          "weights",
          c.weights,
          {.doc = "Size of the weights of each version. 0: one line of text.",
           .min = Bytes(0),
           .max = Bytes(Bytes::rep{1} << 36)});
}

/// Keys for attached workers.
void describe_attached(auto& v, TransportSection& c) {
  v.field(20,
          "advertise",
          c.advertise,
          {.doc = "tcp: host name or address that attached workers connect to. Empty: that of "
                  "`bind`, or this machine's host name if `bind` is a wildcard address."});
  v.field(21,
          "grace",
          c.grace,
          {.doc = "How long an attached worker that lost its orchestrator keeps its loaded state "
                  "and waits for the run to resume.",
           .min = std::chrono::seconds(0)});
  v.field(22,
          "weights",
          c.weights,
          {.doc = "How weights reach attached engines. `relay`: images over 1 MiB are passed from "
                  "engine to engine, so each host's link carries one copy; `broadcast`: the "
                  "orchestrator sends a copy to each engine; `folder`: through files in the run "
                  "folder, which all hosts must see."});
  v.field(23,
          "relay_timeout",
          c.relay_timeout,
          {.doc = "relay: after this long without data, an engine requests the rest from the "
                  "engine one place up the chain, and finally from the orchestrator.",
           .min = std::chrono::seconds(1)});
}

void describe(auto& v, TransportSection& c) {
  v.field(
      10,
      "kind",
      c.kind,
      {.doc = "`ipc`: Unix sockets on this machine; `tcp`: workers may run on other machines."});
  v.field(11,
          "bind",
          c.bind,
          {.doc = "tcp: address to listen on. Workers on other machines need one that they can "
                  "reach, such as `0.0.0.0`."});
  v.field(12, "port", c.port, {.doc = "tcp: port to listen on. 0: any free port."});
  describe_attached(v, c);
  v.field(13,
          "heartbeat",
          c.heartbeat,
          {.doc = "Interval between heartbeats, in both directions.",
           .min = std::chrono::milliseconds(1)});
  v.field(14,
          "heartbeat_timeout",
          c.heartbeat_timeout,
          {.doc = "After this long without a message, a worker is declared lost and replaced. At "
                  "least twice `heartbeat`.",
           .min = std::chrono::milliseconds(10)});
  v.field(15,
          "max_restarts",
          c.max_restarts,
          {.doc = "Consecutive restarts of one actor before the run fails. The count is reset when "
                  "a checkpoint finds the actor working, and after `restarts_forgiven_after`.",
           .min = 0,
           .max = 1000});
  v.field(17,
          "restarts_forgiven_after",
          c.restarts_forgiven_after,
          {.doc = "Working time after which an actor's count of restarts is reset.",
           .min = std::chrono::seconds(1)});
  v.field(18,
          "starts_at_once",
          c.starts_at_once,
          {.doc = "Largest number of actors that start at the same time; further ones wait. Limits "
                  "the load on this machine while models are loaded.",
           .min = 1,
           .max = 4096});
  v.field(16,
          "actors_per_worker",
          c.actors_per_worker,
          {.doc = "Simulated hardware: number of actors that share one worker process.",
           .min = 1,
           .max = 1024});
  v.field(19,
          "security",
          c.security,
          {.doc = "tcp: `curve` encrypts all traffic (CurveZMQ) and admits only workers with a key "
                  "of this run; `plain` does neither, and is allowed only on a loopback address."});
  describe(v, c.limits);  // Field numbers 1 to 9.
}

void describe(auto& v, CheckpointConfig& c) {
  v.field(1,
          "every",
          c.every,
          {.doc = "Steps between two checkpoints. 0: only one, at the end of the run.", .min = 0});
  v.field(2,
          "keep",
          c.keep,
          {.doc = "Number of newest checkpoints to keep; older ones are deleted.",
           .min = 1,
           .max = 10000});
}

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::HardwareKind> {
  using H = orchestrator::HardwareKind;
  static constexpr std::array<std::pair<H, std::string_view>, 2> value{
      {{H::Local, "local"}, {H::Simulated, "simulated"}}};
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
