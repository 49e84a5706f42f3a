// What a worker is told at registration: its role, its cards, and the settings of its engine.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/task/task_config.hpp"
#include "core/describe.hpp"

namespace temper {
namespace actors {

enum class RoleKind { Rollout, Reference, Reward, Trainer };
enum class PolicyKind { Torch, Synthetic };

/// `settings` is the msgpack of the role's own section (rollout or trainer), which this layer does
/// not know.
struct RoleConfig {
  RoleKind kind = RoleKind::Rollout;
  PolicyKind policy = PolicyKind::Torch;
  std::vector<std::uint32_t> cards;  ///< Cores to pin to.
  std::uint64_t seed = 0;
  ModelConfig model;
  TaskConfig task;
  VerifierConfig verifier;
  std::string base_weights;   ///< trainer, reference: safetensors file to start from.
  std::string resume_from;    ///< trainer: checkpoint folder to continue from; empty: none.
  PolicyVersion version;      ///< trainer: version of the weights it starts from.
  bool shared_memory = true;  ///< Weights go through shared memory, else as chunks.
  std::string settings;
  std::string simulation;    ///< msgpack of SimulationSettings; empty on local hardware.
  bool takes_turns = false;  ///< reference: starts on the host and comes to its cards when told.
};

template <class V>
void describe(V& v, RoleConfig& c) {
  v.field(1, "kind", c.kind, {.doc = "Role."});
  v.field(2, "policy", c.policy, {.doc = "Engine family."});
  v.field(3, "cards", c.cards, {.doc = "Cards (cores) to pin to."});
  v.field(4, "seed", c.seed, {.doc = "Seed of the run."});
  v.field(5, "model", c.model, {.doc = "Shape of the policy."});
  v.field(6, "task", c.task, {.doc = "Task."});
  v.field(7, "verifier", c.verifier, {.doc = "Verifier."});
  v.field(8, "base_weights", c.base_weights, {.doc = "File of the base checkpoint."});
  v.field(9, "resume_from", c.resume_from, {.doc = "Checkpoint folder, or empty."});
  v.field(10, "shared_memory", c.shared_memory, {.doc = "Weights through shared memory."});
  v.field(12, "version", c.version, {.doc = "Version of the weights to start from."});
  v.field(11, "settings", c.settings, {.doc = "msgpack of the role's own settings."});
  v.field(13, "simulation", c.simulation, {.doc = "msgpack of what is simulated; or empty."});
  v.field(14, "takes_turns", c.takes_turns, {.doc = "Reference: starts on the host."});
}

}  // namespace actors

template <>
struct EnumNames<actors::RoleKind> {
  using R = actors::RoleKind;
  static constexpr std::array<std::pair<R, std::string_view>, 4> value{{{R::Rollout, "rollout"},
                                                                        {R::Reference, "reference"},
                                                                        {R::Reward, "reward"},
                                                                        {R::Trainer, "trainer"}}};
};
template <>
struct EnumNames<actors::PolicyKind> {
  using P = actors::PolicyKind;
  static constexpr std::array<std::pair<P, std::string_view>, 2> value{
      {{P::Torch, "torch"}, {P::Synthetic, "synthetic"}}};
};

}  // namespace temper
