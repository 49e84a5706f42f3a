// What a worker is told at registration: its role, its cards, and the settings of its engine.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/protocol/engine_config.hpp"
#include "actors/task/task_config.hpp"
#include "core/describe.hpp"

namespace temper {
namespace actors {

enum class RoleKind { Rollout, Reference, Reward, Trainer };
enum class PolicyKind { Torch, Synthetic };

/// What the token ids of the run mean.
struct Vocabulary {
  std::int32_t size = 0;  ///< Token ids are 0 to size - 1.
  std::int32_t pad = 0;
  std::int32_t end = 1;            ///< Ends a response, and is its last token.
  std::int32_t first = 2;          ///< Of the first character.
  std::string alphabet;            ///< Empty: the characters are the 256 values of a byte.
  std::vector<std::int32_t> ends;  ///< All that end a response, `end` first.
  std::string
      folder;  ///< Model folder whose tokenizer says what ids mean; empty: the fields above.
};

template <class V>
void describe(V& v, Vocabulary& c) {
  v.field(1, "size", c.size, {.doc = "Token ids are 0 to size - 1."});
  v.field(2, "pad", c.pad, {.doc = "Stands for no token."});
  v.field(3, "end", c.end, {.doc = "Ends a response, and is its last token."});
  v.field(4, "first", c.first, {.doc = "Token of the first character."});
  v.field(
      5,
      "alphabet",
      c.alphabet,
      {.doc = "The characters, one token each, from `first` on; empty: the 256 values of a byte."});
  v.field(6, "ends", c.ends, {.doc = "All tokens that end a response, `end` first."});
  v.field(7,
          "folder",
          c.folder,
          {.doc = "Model folder whose tokenizer says what ids mean, in place of `first` and "
                  "`alphabet`; empty: they do."});
}

/// `settings` is the msgpack of the role's own section (RolloutSettings or TrainerSettings), which
/// this layer does not know.
struct RoleConfig {
  RoleKind kind = RoleKind::Rollout;
  PolicyKind policy = PolicyKind::Torch;
  std::vector<std::uint32_t> cards;  ///< Cores to pin to.
  std::uint64_t seed = 0;
  ModelConfig model;
  TaskConfig task;
  VerifierConfig verifier;
  std::string base_weights;   ///< Model folder to start from; empty: `policy: synthetic`.
  std::string resume_from;    ///< trainer: checkpoint folder to continue from; empty: none.
  PolicyVersion version;      ///< trainer: version of the weights it starts from.
  bool shared_memory = true;  ///< Weights go through shared memory, else as chunks.
  std::vector<std::byte> settings;
  std::vector<std::byte> simulation;  ///< msgpack of SimulationSettings; empty on local hardware.
  bool takes_turns = false;  ///< reference: starts on the host and comes to its cards when told.
  EngineConfig engine;
  Vocabulary vocabulary;
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
  v.field(8,
          "base_weights",
          c.base_weights,
          {.doc = "Folder of the base model, as Hugging Face keeps one: config.json, weights."});
  v.field(9, "resume_from", c.resume_from, {.doc = "Checkpoint folder, or empty."});
  v.field(10, "shared_memory", c.shared_memory, {.doc = "Weights through shared memory."});
  v.field(12, "version", c.version, {.doc = "Version of the weights to start from."});
  v.field(14, "takes_turns", c.takes_turns, {.doc = "Reference: starts on the host."});
  v.field(
      15,
      "settings",
      c.settings,
      {.doc = "msgpack map of the role's own settings: of a rollout RolloutSettings, of trainer "
              "and reference TrainerSettings."});
  v.field(16, "simulation", c.simulation, {.doc = "msgpack of what is simulated; or empty."});
  v.field(17, "engine", c.engine, {.doc = "Who does the work."});
  v.field(18, "vocabulary", c.vocabulary, {.doc = "What token ids mean."});
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
