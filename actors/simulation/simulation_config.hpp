// What a run on simulated hardware simulates: the cluster, the model, how each role is laid out
// over its cards. The section `simulation` of a pipeline; resolved, it travels to every actor.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/cluster_config.hpp"
#include "actors/simulation/fault_config.hpp"
#include "actors/simulation/length_config.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper {
namespace actors {

/// How new weights get from the trainer to the rollout engines
/// (actors/simulation/weight_moves.hpp).
enum class PublicationMode { Relay, Broadcast };

}  // namespace actors

template <>
struct EnumNames<actors::PublicationMode> {
  using E = actors::PublicationMode;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::Relay, "relay"}, {E::Broadcast, "broadcast"}}};
};

namespace actors {

/// One rollout engine: what its cards' devices are to each other.
struct RolloutEngineConfig {
  std::int64_t tp = 1;                 ///< Devices of one replica of attention.
  std::int64_t ep = 1;                 ///< Devices that share the experts; within one engine.
  double kv_share = 0.9;               ///< Of the memory that weights leave, for keys and values.
  std::int64_t block = 128;            ///< Tokens of a KV block.
  std::int64_t prefill_tokens = 8192;  ///< Of one prefill step, per replica.
  bool tuned_host = true;              ///< Without the overhead of an untuned host.

  bool operator==(const RolloutEngineConfig&) const = default;
};
template <class V>
void describe(V& v, RolloutEngineConfig& c) {
  v.field(1, "tp", c.tp, {.doc = "Tensor parallelism, in devices.", .min = 1});
  v.field(2, "ep", c.ep, {.doc = "Expert parallelism, in devices of one engine.", .min = 1});
  v.field(3,
          "kv_share",
          c.kv_share,
          {.doc = "Of the memory left by weights, for KV.", .min = 0.01, .max = 1.0});
  v.field(4, "block", c.block, {.doc = "Tokens of a KV block.", .min = 1});
  v.field(5,
          "prefill_tokens",
          c.prefill_tokens,
          {.doc = "Most tokens of a prefill step and replica.", .min = 1});
  v.field(6,
          "tuned_host",
          c.tuned_host,
          {.doc = "Host without garbage collection pauses, cores pinned."});
}

struct TrainerEngineConfig {
  std::int64_t tp = 1, pp = 1, vpp = 1, ep = 1, cp = 1;
  std::int64_t micro_batch_tokens = 8192;  ///< Responses are packed up to this.
  bool optimizer_on_host = true;           ///< Its states live in host memory between updates.
  sim_hw::LayerBalance layer_balance = sim_hw::LayerBalance::LastShort;
  sim_hw::Mechanisms mechanisms{};  ///< Of its steps.

  bool operator==(const TrainerEngineConfig&) const = default;
};
template <class V>
void describe(V& v, TrainerEngineConfig& c) {
  v.field(1, "tp", c.tp, {.doc = "Tensor parallelism, in devices.", .min = 1});
  v.field(2, "pp", c.pp, {.doc = "Pipeline stages.", .min = 1});
  v.field(3, "vpp", c.vpp, {.doc = "Chunks of a stage.", .min = 1});
  v.field(4, "ep", c.ep, {.doc = "Expert parallelism, in devices.", .min = 1});
  v.field(5, "cp", c.cp, {.doc = "Context parallelism, in devices.", .min = 1});
  v.field(6,
          "micro_batch_tokens",
          c.micro_batch_tokens,
          {.doc = "Tokens that a micro-batch packs.", .min = 1});
  v.field(7, "optimizer_on_host", c.optimizer_on_host, {.doc = "Optimizer states in host memory."});
  v.field(8,
          "layer_balance",
          c.layer_balance,
          {.doc = "Layers of pipeline stages: the last has what is left, or all as many, or heads "
                  "count."});
  v.field(9, "mechanisms", c.mechanisms, {.doc = "How a training step is run."});
}

/// Rewards are judged by `pool` workers of each reward actor, each response taking a lognormal
/// time.
struct RewardPoolConfig {
  Duration mean = std::chrono::seconds(1);
  double p99_over_median = 4;
  std::int32_t pool = 256;
};
template <class V>
void describe(V& v, RewardPoolConfig& c) {
  v.field(1, "mean", c.mean, {.doc = "Mean time to judge one response.", .min = Duration(0)});
  v.field(2, "p99_over_median", c.p99_over_median, {.doc = "Spread of that time.", .min = 1.0});
  v.field(3, "pool", c.pool, {.doc = "Responses judged at once per reward actor.", .min = 1});
}

struct PublicationConfig {
  PublicationMode mode = PublicationMode::Relay;
  double link_share = 1;
};
template <class V>
void describe(V& v, PublicationConfig& c) {
  v.field(1,
          "mode",
          c.mode,
          {.doc = "Broadcast: every engine receives from the trainer; relay: from the engine "
                  "before it."});
  v.field(2,
          "link_share",
          c.link_share,
          {.doc = "Of the speed of links, what weights reach when they are published or change "
                  "places in a role switch; frameworks were measured at 0.025 to 0.1.",
           .min = 0.001,
           .max = 1.0});
}

struct SimulationConfig {
  std::string cluster;  ///< Name or path of a hardware description.
  std::vector<ClusterConfig> clusters;
  BetweenConfig between;
  std::string model;  ///< Name or path of a model description.
  LengthConfig prompt;
  LengthConfig response;
  RolloutEngineConfig rollout;
  TrainerEngineConfig trainer;
  RewardPoolConfig reward;
  Duration report_every = std::chrono::seconds(1);
  PublicationConfig publication;
  FaultConfig faults;
  CheckpointCostConfig checkpoint;
};
template <class V>
void describe(V& v, SimulationConfig& c) {
  v.field(1,
          "cluster",
          c.cluster,
          {.doc = "Hardware of all cards, from configs/hardware or a path; or else `clusters`."});
  v.field(12,
          "clusters",
          c.clusters,
          {.doc = "Hardware that differs from card to card; a role's cards are all of one of them, "
                  "and the rollout's of the first unless `placement` says otherwise."});
  v.field(13, "between", c.between, {.doc = "The link between clusters."});
  v.field(2, "model", c.model, {.doc = "Model, from configs/models or a path."});
  v.field(3, "prompt", c.prompt, {.doc = "Lengths of prompts."});
  v.field(4, "response", c.response, {.doc = "Lengths of responses."});
  v.field(5, "rollout", c.rollout, {.doc = "Layout of a rollout engine."});
  v.field(6, "trainer", c.trainer, {.doc = "Layout of the trainer."});
  v.field(7, "reward", c.reward, {.doc = "Reward workers."});
  v.field(
      8,
      "report_every",
      c.report_every,
      {.doc = "Longest time an engine keeps finished responses to itself.", .min = Duration(0)});
  v.field(9, "publication", c.publication, {.doc = "How new weights reach the engines."});
  v.field(10, "faults", c.faults, {.doc = "What fails, how often, and what replaces it."});
  v.field(11, "checkpoint", c.checkpoint, {.doc = "What a checkpoint costs."});
}

/// The cluster that a role's cards are of.
struct RoleCluster {
  std::int64_t index = 0;  ///< In `clusters`.
  sim_hw::HardwareSpec hardware;
  BytesPerSecond port{};  ///< Of one device towards other clusters.
};
template <class V>
void describe(V& v, RoleCluster& c) {
  v.field(1, "index", c.index);
  v.field(2, "hardware", c.hardware);
  v.field(3, "port", c.port);
}
/// Of each role that has cards. A run without a reference has the trainer's for it.
struct RoleClusters {
  RoleCluster trainer, rollout, reference;
};
template <class V>
void describe(V& v, RoleClusters& c) {
  v.field(1, "trainer", c.trainer);
  v.field(2, "rollout", c.rollout);
  v.field(3, "reference", c.reference);
}

/// What is true of a whole simulated run, for every role alike: the above with its descriptions and
/// traces read, and the trainer, of which there is one.
struct SimulatedRun {
  SimulationConfig config;
  /// Of the role that is looked at, of which an actor's settings have their own; else the
  /// trainer's.
  sim_hw::HardwareSpec cluster;
  std::optional<RoleClusters> clusters{};  ///< None: every role is in `cluster`.
  sim_hw::ModelSpec model;
  std::int64_t trainer_cards = 1;  ///< Of the trainer: where weights come from.
  bool deadline_first = false;     ///< Engines: the oldest group enters first, the youngest leaves.
  /// Responses that each simulated one counts for: the costs are those of so many times the work
  /// that is there (study/simulate/simulate.hpp, thinned runs).
  std::int64_t response_weight = 1;
};

/// What one actor of such a run has to know: the run, and its own share of it.
struct SimulationSettings : SimulatedRun {
  std::int64_t cards = 1;          ///< Of this actor.
  std::int64_t rollout_cards = 1;  ///< rollout: of all engines that take over a version with it.
  std::int32_t concurrency = 0;    ///< rollout: most responses at once.
  bool colocated = false;          ///< Takes turns with other roles on its cards.
  /// Bytes of a device's share of host memory that no role needs in any phase; none: what the
  /// engine's own ledger leaves.
  std::optional<double> host_left{};
};
template <class V>
void describe(V& v, SimulationSettings& c) {
  v.field(1, "config", c.config);
  v.field(2, "cluster", c.cluster);
  v.field(3, "model", c.model);
  v.field(4, "cards", c.cards);
  v.field(5, "trainer_cards", c.trainer_cards);
  v.field(6, "rollout_cards", c.rollout_cards);
  v.field(7, "concurrency", c.concurrency);
  v.field(8, "colocated", c.colocated);
  v.field(9, "host_left", c.host_left);
  v.field(10, "deadline_first", c.deadline_first);
  v.field(11, "response_weight", c.response_weight);
  v.field(12, "clusters", c.clusters);
}

}  // namespace actors
}  // namespace temper
