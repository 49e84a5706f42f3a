// Configuration of simulated hardware: the cluster, the model, and the layout of each role on its
// cards. The section `simulation` of a pipeline; resolved, it is sent to every actor.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/cluster_config.hpp"
#include "actors/simulation/expert_config.hpp"
#include "actors/simulation/fault_config.hpp"
#include "actors/simulation/length_config.hpp"
#include "actors/simulation/reference_config.hpp"
#include "actors/simulation/tensor_config.hpp"
#include "actors/simulation/tool_config.hpp"
#include "sim_hw/framework/framework.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/adapter.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/operators/formats.hpp"
#include "sim_hw/steps/draft.hpp"

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

/// How a batch is packed and dealt to the trainer's replicas, and where these wait for each other
/// (actors/simulation/packing.hpp).
enum class DataBalance { Step, Arrival, Tokens, Attention };

}  // namespace actors

template <>
struct EnumNames<actors::DataBalance> {
  using E = actors::DataBalance;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{
      {{E::Step, "step"},
       {E::Arrival, "arrival"},
       {E::Tokens, "tokens"},
       {E::Attention, "attention"}}};
};

namespace actors {

/// Speculative decoding.
struct SpeculationConfig {
  std::int64_t depth = 0;  ///< Drafts that a decode step verifies; 0: no speculation.
  double acceptance = 0;   ///< Of each draft, given that the ones before it were accepted.
  sim_hw::Draft method = sim_hw::Draft::Mtp;
  std::optional<std::int64_t> disable_by_batch_size{};  ///< Empty: every step drafts.

  bool operator==(const SpeculationConfig&) const = default;
};
void describe(auto& v, SpeculationConfig& c) {
  v.field(1,
          "depth",
          c.depth,
          {.doc = "Tokens that are drafted for each response, and that the next decode step "
                  "verifies together with its own. 0: no speculation.",
           .min = 0,
           .max = 64});
  v.field(
      2,
      "acceptance",
      c.acceptance,
      {.doc = "Chance p that a draft is accepted if the ones before it were. A step brings each "
              "response 1 + p + ... + p^depth tokens, always this mean; fractions carry over to "
              "the next step, and no chance is drawn.",
       .min = 0.0,
       .max = 1.0});
  v.field(3,
          "method",
          c.method,
          {.doc = "What drafts. `mtp`: the MTP modules of the model; requires "
                  "`simulation.trainer.mtp`, which keeps them at the current version. `eagle`: a "
                  "dense layer that engines have besides the model. It is neither trained nor "
                  "published, so that `acceptance` is that of a draft which stays as it is. "
                  "`ngram`: a look-up in the tokens so far, which takes no time and no memory. "
                  "`none`: nothing, whatever the depth."});
  v.field(4,
          "disable_by_batch_size",
          c.disable_by_batch_size,
          {.doc = "A decode step drafts nothing, and brings each response one token, while more "
                  "responses than this run on an attention replica of the engine. Null: every step "
                  "drafts.",
           .min = 0});
}

/// Layout, number formats and speculation of one rollout engine.
struct RolloutEngineConfig {
  std::int64_t tp = 1;                 ///< Devices per attention replica.
  std::int64_t ep = 1;                 ///< Devices over which the experts of one engine are spread.
  double kv_share = 0.9;               ///< Share of the memory left by weights that is used for KV.
  std::int64_t block = 128;            ///< Tokens of a KV block.
  std::int64_t prefill_tokens = 8192;  ///< Most tokens per prefill step and replica.
  bool tuned_host = true;              ///< False adds the overhead of an untuned host.
  bool chunked_prefill = false;        ///< Responses decode beside the prefill of others.
  std::int64_t prefill_cards = 0;      ///< Cards of an engine that only prefill.
  sim_hw::WeightFormat weights = sim_hw::WeightFormat::Bf16;
  sim_hw::CacheFormat kv_cache = sim_hw::CacheFormat::Bf16;
  SpeculationConfig speculation{};
  std::int64_t redundant_experts = 0;  ///< Copies in each layer, besides one of each expert.

  sim_hw::EngineFormats formats() const { return {weights, kv_cache, false}; }
  bool operator==(const RolloutEngineConfig&) const = default;
};
void describe(auto& v, RolloutEngineConfig& c) {
  v.field(1, "tp", c.tp, {.doc = "Tensor parallelism, in devices.", .min = 1});
  v.field(2, "ep", c.ep, {.doc = "Expert parallelism, in devices of one engine.", .min = 1});
  v.field(
      3,
      "kv_share",
      c.kv_share,
      {.doc = "Share of the memory left by weights that is used for KV.", .min = 0.01, .max = 1.0});
  v.field(4, "block", c.block, {.doc = "Tokens of a KV block.", .min = 1});
  v.field(5,
          "prefill_tokens",
          c.prefill_tokens,
          {.doc = "Most tokens per prefill step and replica.", .min = 1});
  v.field(6,
          "tuned_host",
          c.tuned_host,
          {.doc = "Tuned host: no garbage collection pauses, pinned cores."});
  v.field(
      7,
      "weights",
      c.weights,
      {.doc = "Number format of the engine's weights and of the activations of its products; heads "
              "and routers compute in BF16, but memory and transfers count every weight in this "
              "format. Hardware without products in it unpacks weights and computes in BF16. The "
              "trainer casts a new version before it sends it."});
  v.field(8,
          "kv_cache",
          c.kv_cache,
          {.doc = "Number format of cached keys and values; attention computes in BF16."});
  v.field(9, "speculation", c.speculation, {.doc = "Speculative decoding."});
  v.field(10,
          "chunked_prefill",
          c.chunked_prefill,
          {.doc = "Responses decode a token in each step that prefills others, which adds to the "
                  "decode step what the prefilled tokens cost in one pass with the decoded ones. "
                  "`false`: prefill steps come before decode steps."});
  v.field(11,
          "prefill_cards",
          c.prefill_cards,
          {.doc = "Disaggregated prefill: cards of each engine that only prefill, and send the "
                  "caches to the others, which only decode. These have `tp` and `ep`; the prefill "
                  "cards have `tp`, and their experts are spread over as many of their devices as "
                  "divides both. 0: all cards do both.",
           .min = 0});
  v.field(12,
          "redundant_experts",
          c.redundant_experts,
          {.doc = "Redundant experts: further copies of the busiest routed experts of each layer, "
                  "which share the tokens of their expert equally. `ep` must divide the experts "
                  "and their copies together.",
           .min = 0});
}

struct TrainerEngineConfig {
  std::int64_t tp = 1, pp = 1, vpp = 1, ep = 1, cp = 1;
  std::int64_t micro_batch_tokens = 8192;  ///< Responses are packed into micro-batches of at most
                                           ///< this size.
  bool optimizer_on_host = true;           ///< Optimizer states are in host memory between updates.
  sim_hw::LayerBalance layer_balance = sim_hw::LayerBalance::LastShort;
  sim_hw::Mechanisms mechanisms{};  ///< Mechanisms of its steps.
  sim_hw::ActivationPolicy activations = sim_hw::ActivationPolicy::Full;
  DataBalance data_balance = DataBalance::Step;
  bool mtp = false;                         ///< Trains the MTP modules of the model.
  std::optional<double> capacity_factor{};  ///< Of experts; empty: nothing is dropped.
  std::optional<ExpertConfig> experts{};    ///< Of training; empty: `simulation.experts`.

  bool operator==(const TrainerEngineConfig&) const = default;
};
void describe(auto& v, TrainerEngineConfig& c) {
  v.field(1, "tp", c.tp, {.doc = "Tensor parallelism, in devices.", .min = 1});
  v.field(2, "pp", c.pp, {.doc = "Pipeline stages.", .min = 1});
  v.field(3, "vpp", c.vpp, {.doc = "Virtual pipeline chunks per stage.", .min = 1});
  v.field(4, "ep", c.ep, {.doc = "Expert parallelism, in devices.", .min = 1});
  v.field(5, "cp", c.cp, {.doc = "Context parallelism, in devices.", .min = 1});
  v.field(6,
          "micro_batch_tokens",
          c.micro_batch_tokens,
          {.doc = "Most tokens per packed micro-batch.", .min = 1});
  v.field(7, "optimizer_on_host", c.optimizer_on_host, {.doc = "Optimizer states in host memory."});
  v.field(8,
          "layer_balance",
          c.layer_balance,
          {.doc = "Distribution of layers over pipeline stages: the last gets the rest, or all the "
                  "same, or heads "
                  "count."});
  v.field(9, "mechanisms", c.mechanisms, {.doc = "Mechanisms of a training step."});
  v.field(10,
          "activations",
          c.activations,
          {.doc = "Saved activations: full recomputation, or as many chosen tensors as memory "
                  "requires are recomputed (selective), moved to the host and back (swap) or "
                  "either (auto)."});
  v.field(11, "mtp", c.mtp, {.doc = "Train the multi-token-prediction modules of the model."});
  v.field(12,
          "data_balance",
          c.data_balance,
          {.doc = "How a batch is dealt to replicas: in order of `arrival`, by `tokens`, or by "
                  "the cost of `attention`; replicas that share experts wait for each other at "
                  "each micro-batch. `step`: by tokens, and they wait at the end of the step."});
  v.field(13,
          "capacity_factor",
          c.capacity_factor,
          {.doc = "Capacity factor of experts: each takes at most this multiple of the mean copies "
                  "per expert from the tokens of a rank in a micro-batch, and drops the others. "
                  "Trained tokens include those with dropped copies. Null: none are dropped.",
           .min = 0.01,
           .max = 1e6});
  v.field(14,
          "experts",
          c.experts,
          {.doc = "Loads of the routed experts in training, with the keys of "
                  "`simulation.experts`. Null: those of `simulation.experts`."});
}

/// Each reward actor has `pool` workers; judging a response takes a lognormal time.
struct RewardPoolConfig {
  Duration mean = std::chrono::seconds(1);
  double p99_over_median = 4;
  std::int32_t pool = 256;
};
void describe(auto& v, RewardPoolConfig& c) {
  v.field(1, "mean", c.mean, {.doc = "Mean time to judge one response.", .min = Duration(0)});
  v.field(2,
          "p99_over_median",
          c.p99_over_median,
          {.doc = "Ratio of the 99th percentile to the median of that time.", .min = 1.0});
  v.field(3, "pool", c.pool, {.doc = "Responses judged at once per reward actor.", .min = 1});
}

struct PublicationConfig {
  PublicationMode mode = PublicationMode::Relay;
  double link_share = 1;
};
void describe(auto& v, PublicationConfig& c) {
  v.field(1,
          "mode",
          c.mode,
          {.doc = "`broadcast`: every engine receives from the trainer; `relay`: from the previous "
                  "engine."});
  v.field(
      2,
      "link_share",
      c.link_share,
      {.doc = "Share of the link bandwidth that weights reach when they are published or move in "
              "a role switch; measured frameworks reach 0.025 to 0.1.",
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
  ExpertConfig experts;
  bool shared_host_links = false;  ///< All devices of a node copy to or from their hosts at once.
  std::optional<ToolConfig> tools{};
  std::string framework{sim_hw::kIdealFramework};  ///< Name or path of its description.
  TensorConfig tensors;
  ReferenceEngineConfig reference;
};
void describe(auto& v, SimulationConfig& c) {
  v.field(
      1,
      "cluster",
      c.cluster,
      {.doc =
           "Hardware of all cards, from configs/hardware or a path; alternative to `clusters`."});
  v.field(12,
          "clusters",
          c.clusters,
          {.doc = "Clusters of different hardware. All cards of a role are in one cluster; the "
                  "rollout's are in the first unless `placement` says otherwise."});
  v.field(13, "between", c.between, {.doc = "The link between clusters."});
  v.field(2, "model", c.model, {.doc = "Model, from configs/models or a path."});
  v.field(3, "prompt", c.prompt, {.doc = "Lengths of prompts."});
  v.field(4, "response", c.response, {.doc = "Lengths of responses."});
  v.field(5,
          "rollout",
          c.rollout,
          {.doc = "Layout, number formats and speculation of a rollout engine."});
  v.field(6, "trainer", c.trainer, {.doc = "Layout of the trainer."});
  v.field(7, "reward", c.reward, {.doc = "Reward workers."});
  v.field(8,
          "report_every",
          c.report_every,
          {.doc = "Longest time before an engine reports finished responses.", .min = Duration(0)});
  v.field(9, "publication", c.publication, {.doc = "How new weights reach the engines."});
  v.field(10, "faults", c.faults, {.doc = "Fault injection."});
  v.field(11, "checkpoint", c.checkpoint, {.doc = "Cost of a checkpoint."});
  v.field(14, "experts", c.experts, {.doc = "Loads of the routed experts."});
  v.field(
      15,
      "shared_host_links",
      c.shared_host_links,
      {.doc =
           "The devices of a node share the links to their hosts (`host.node_bandwidth` of "
           "the hardware; no effect without it): role switches, publications and swaps of all of "
           "them coincide."});
  v.field(
      16,
      "tools",
      c.tools,
      {.doc = "Tool calls of responses; without it, a response is one turn. A response that "
              "waits for a tool still counts towards `rollout.concurrency`: raise that, so that "
              "others run meanwhile. On local hardware, what an agent does, for forecasts "
              "(docs/how-to/agents.md)."});
  v.field(17,
          "framework",
          c.framework,
          {.doc = "What the framework adds to the copies of weights in publications and role "
                  "switches: a name from configs/frameworks or a path. `ideal`: nothing."});
  v.field(18, "tensors", c.tensors, {.doc = "Tensors that each response has for the trainer."});
  v.field(19, "reference", c.reference, {.doc = "Model and layout of a reference."});
}

/// The cluster of a role's cards.
struct RoleCluster {
  std::int64_t index = 0;  ///< Index in `clusters`.
  sim_hw::HardwareSpec hardware;
  BytesPerSecond port{};  ///< Bandwidth of one device toward other clusters.
};
void describe(auto& v, RoleCluster& c) {
  v.field(1, "index", c.index);
  v.field(2, "hardware", c.hardware);
  v.field(3, "port", c.port);
}
/// The clusters of the roles that have cards. Without a reference, `reference` is the trainer's.
struct RoleClusters {
  RoleCluster trainer, rollout, reference;
};
void describe(auto& v, RoleClusters& c) {
  v.field(1, "trainer", c.trainer);
  v.field(2, "rollout", c.rollout);
  v.field(3, "reference", c.reference);
}

/// Settings of a whole simulated run, the same for every role: the configuration with its
/// descriptions and traces loaded, and the trainer.
struct SimulatedRun {
  SimulationConfig config;
  /// Hardware of the selected role (in the settings of an actor: its own); otherwise the trainer's.
  sim_hw::HardwareSpec cluster;
  std::optional<RoleClusters> clusters{};  ///< Empty: every role is in `cluster`.
  /// Of the selected role; otherwise the policy's.
  sim_hw::ModelSpec model;
  /// Of a reference whose model is not the policy's, until look_at() selects its role.
  std::optional<sim_hw::ModelSpec> reference_model{};
  std::vector<double> expert_trace{};          ///< Of `experts.trace`: rows of one load per expert.
  std::vector<double> trainer_expert_trace{};  ///< The same of `trainer.experts.trace`.
  std::int64_t trainer_cards = 1;  ///< Cards of the trainer, from which weights are sent.
  bool critic = false;  ///< The trainer also trains a critic of the model's shape on its cards.
  bool deadline_first = false;  ///< Engines admit the oldest group first and evict the youngest.
  /// Number of responses that each simulated response stands for; costs are multiplied accordingly
  /// (study/simulate/simulate.hpp, thinned runs).
  std::int64_t response_weight = 1;
  std::int64_t older_versions = 0;  ///< Most versions before the current one that an engine keeps.
  /// Bytes of tensors of the responses of a step, and of all that may be outstanding; means.
  double step_tensors = 0, outstanding_tensors = 0;
  /// What is trained and published, beside frozen weights; empty: all weights.
  std::optional<sim_hw::Adapter> adapter{};
  /// What its stages add to copies of weights; empty: nothing.
  std::optional<sim_hw::FrameworkSpec> framework{};
};

/// Settings of one actor: the run, and its own share of it.
struct SimulationSettings : SimulatedRun {
  std::int64_t cards = 1;          ///< Cards of this actor.
  std::int64_t rollout_cards = 1;  ///< rollout: cards of all engines that switch versions together
                                   ///< with this one.
  std::int32_t concurrency = 0;    ///< rollout: most concurrent responses.
  bool colocated = false;          ///< Its cards are time-shared with other roles.
  /// Bytes of a device's share of host memory that no role needs in any phase; empty: the remainder
  /// of the engine's own ledger.
  std::optional<double> host_left{};
  TensorPlaces tensor_places{};  ///< trainer: with simulation.tensors.
};
void describe(auto& v, SimulationSettings& c) {
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
  v.field(13, "expert_trace", c.expert_trace);
  v.field(14, "older_versions", c.older_versions);
  v.field(15, "critic", c.critic);
  v.field(16, "adapter", c.adapter);
  v.field(17, "framework", c.framework);
  v.field(18, "step_tensors", c.step_tensors);
  v.field(19, "outstanding_tensors", c.outstanding_tensors);
  v.field(20, "tensor_places", c.tensor_places);
}

}  // namespace actors
}  // namespace temper
