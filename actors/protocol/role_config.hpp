// The configuration that a worker receives at registration: its role, its cards, and the settings
// of its engine.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/protocol/engine_config.hpp"
#include "actors/task/task_config.hpp"
#include "core/describe.hpp"

namespace temper {
namespace actors {

enum class RoleKind { Rollout, Reference, Reward, Trainer };
enum class PolicyKind { Torch, Synthetic };

/// The meaning of the run's token ids.
struct Vocabulary {
  std::int32_t size = 0;  ///< Token ids are 0 to size - 1.
  std::int32_t pad = 0;
  std::int32_t end = 1;            ///< End-of-response token; the last token of a response.
  std::int32_t first = 2;          ///< Token id of the first character.
  std::string alphabet;            ///< Empty: the characters are the 256 byte values.
  std::vector<std::int32_t> ends;  ///< All end-of-response tokens, `end` first.
  std::string folder;  ///< Model folder with the tokenizer; empty: the fields above apply.
};

void describe(auto& v, Vocabulary& c) {
  v.field(1, "size", c.size, {.doc = "Token ids are 0 to size - 1."});
  v.field(2, "pad", c.pad, {.doc = "Padding token."});
  v.field(3, "end", c.end, {.doc = "Token that ends a response; it is the response's last token."});
  v.field(4, "first", c.first, {.doc = "Token of the first character."});
  v.field(
      5,
      "alphabet",
      c.alphabet,
      {.doc = "The characters, one token each, starting at `first`; empty: the 256 byte values."});
  v.field(6, "ends", c.ends, {.doc = "All tokens that end a response, `end` first."});
  v.field(7,
          "folder",
          c.folder,
          {.doc = "Model folder whose tokenizer defines the token ids, instead of `first` and "
                  "`alphabet`; empty: these define them."});
}

/// A Redis server of tensors.
struct TensorServer {
  std::string host;
  std::uint32_t port = 0;
};

void describe(auto& v, TensorServer& c) {
  v.field(1, "host", c.host, {.doc = "Host."});
  v.field(2, "port", c.port, {.doc = "Port."});
}

/// Where engines write tensors of responses, and the trainer reads them.
struct TensorPlace {
  std::string folder;                 ///< In shared memory; empty: none.
  std::vector<TensorServer> servers;  ///< Of Redis; empty: none.
  std::string password;               ///< Of the servers; empty: they ask for none.
  std::string prefix;                 ///< Of all keys of the run.
  Duration lease{};                   ///< Keys expire after it, unless the orchestrator extends it.
  Duration wait{};   ///< How long to wait for space, and for a server that does not answer.
  bool tls = false;  ///< The servers are reached through TLS.
  std::string ca_certificates;  ///< PEM; trusted besides those of the worker's system.
};

void describe(auto& v, TensorPlace& c) {
  v.field(
      1,
      "folder",
      c.folder,
      {.doc = "Folder in shared memory, for files. Without it and without `servers`, responses may "
              "have no tensors."});
  v.field(10,
          "servers",
          c.servers,
          {.doc = "Redis servers; empty: none. A key is on server number XXH3-64(key) modulo their "
                  "number."});
  v.field(4, "password", c.password, {.doc = "Password of the servers; empty: none."});
  v.field(5, "prefix", c.prefix, {.doc = "Beginning of all keys of the run."});
  v.field(
      6,
      "lease",
      c.lease,
      {.doc = "An engine writes a key with this time to live; the orchestrator extends it until "
              "the response was trained."});
  v.field(
      7,
      "wait",
      c.wait,
      {.doc = "How long an engine waits for space, and an engine or a trainer for a server that "
              "does not answer."});
  v.field(8,
          "tls",
          c.tls,
          {.doc = "The servers are reached through TLS. A worker verifies the certificate of each "
                  "and that it is for its `host`."});
  v.field(9,
          "ca_certificates",
          c.ca_certificates,
          {.doc = "CA certificates in PEM that the worker trusts besides those of its system."});
}

/// `settings` is the msgpack encoding of the role's own section (RolloutSettings or
/// TrainerSettings), which this layer does not know.
struct RoleConfig {
  RoleKind kind = RoleKind::Rollout;
  PolicyKind policy = PolicyKind::Torch;
  std::vector<std::uint32_t> cards;  ///< Cards, or cores to pin to.
  std::uint64_t seed = 0;
  ModelConfig model;
  TaskConfig task;
  VerifierConfig verifier;
  std::string base_weights;   ///< Model folder to start from; empty: `policy: synthetic`.
  std::string resume_from;    ///< trainer: checkpoint folder to continue from; empty: none.
  PolicyVersion version;      ///< trainer: version of the initial weights.
  bool shared_memory = true;  ///< True: weights travel through shared memory; false: as chunks.
  std::vector<std::byte> settings;
  std::vector<std::byte> simulation;  ///< msgpack of SimulationSettings; empty on local hardware.
  bool takes_turns = false;  ///< reference: starts on the host and moves to its cards on request.
  EngineConfig engine;
  Vocabulary vocabulary;
  TensorPlace tensors{};        ///< rollout, trainer: where tensors of responses are.
  bool serves_weights = false;  ///< trainer: its worker sends its images to others on request.
};

void describe(auto& v, RoleConfig& c) {
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
          {.doc = "Hugging Face folder of the base model: config.json and weights."});
  v.field(9, "resume_from", c.resume_from, {.doc = "Checkpoint folder, or empty."});
  v.field(
      10, "shared_memory", c.shared_memory, {.doc = "True: weights travel through shared memory."});
  v.field(12, "version", c.version, {.doc = "Version of the initial weights."});
  v.field(14,
          "takes_turns",
          c.takes_turns,
          {.doc = "Reference: time-shares its cards, so it starts on the host."});
  v.field(15,
          "settings",
          c.settings,
          {.doc = "msgpack map of the role's own settings: RolloutSettings for rollout, "
                  "TrainerSettings for trainer and reference."});
  v.field(16,
          "simulation",
          c.simulation,
          {.doc = "msgpack of the simulation settings; empty on real hardware."});
  v.field(17, "engine", c.engine, {.doc = "Engine that does the work."});
  v.field(18, "vocabulary", c.vocabulary, {.doc = "Meaning of the token ids."});
  v.field(
      20, "tensors", c.tensors, {.doc = "Rollout and trainer: where tensors of responses are."});
  v.field(21,
          "serves_weights",
          c.serves_weights,
          {.doc = "Trainer whose worker relays weights: it may announce images as `on_request`."});
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
