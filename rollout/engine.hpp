// What a rollout actor needs of its engine: continuous batching over a set of responses, weights
// that are staged while generation goes on and switched between two steps, and memory that can be
// given back when the cards change role. Not thread-safe, except stage().
#pragma once

#include "actors/protocol/sample.hpp"
#include "core/result.hpp"

#include <optional>
#include <span>
#include <vector>

namespace temper {
namespace rollout {

/// What becomes of the keys and values of running responses when weights change: kept, so that what
/// follows is sampled from neither version's policy, or computed again under the new weights.
enum class OnNewWeights { KeepKv, Recompute };

}  // namespace rollout

template <>
struct EnumNames<rollout::OnNewWeights> {
  using O = rollout::OnNewWeights;
  static constexpr std::array<std::pair<O, std::string_view>, 2> value{
      {{O::KeepKv, "keep_kv"}, {O::Recompute, "recompute"}}};
};

namespace rollout {

struct SamplingConfig {
  double temperature = 1.0;
  double top_p = 1.0;
  Tokens max_new_tokens{8};
};

template <class V>
void describe(V& v, SamplingConfig& c) {
  v.field(1,
          "temperature",
          c.temperature,
          {.doc = "Divides the logits; recorded log-probs are of the distribution sampled from.",
           .min = 0.01,
           .max = 100.0});
  v.field(2,
          "top_p",
          c.top_p,
          {.doc = "Nucleus sampling: the smallest set of tokens with this much mass.",
           .min = 0.01,
           .max = 1.0});
  v.field(3,
          "max_new_tokens",
          c.max_new_tokens,
          {.doc = "Longest response, in tokens.", .min = Tokens(1)});
}

/// One response to generate. `prefix` holds tokens an interrupted attempt already made: they count
/// towards max_new_tokens and are recomputed, not sampled again. The random stream of a response
/// is fixed by `seed`, its id and the token's position, whatever else is in the batch.
struct GenerationRequest {
  ResponseId id;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> prefix{};
  std::optional<Tokens> most{};       ///< To add at most; none: what max_new_tokens leaves.
  std::vector<std::int32_t> stops{};  ///< Tokens that end it beside the model's own.
  bool greedy = false;  ///< The likeliest token each time; its log-prob is still of the sampler.
};

/// Tokens sampled by this engine for one response (without the request's prefix).
struct Generation {
  ResponseId id;
  std::vector<std::int32_t> tokens;  ///< Ends with the end token if finish is End.
  std::vector<float> logprobs;       ///< As sampled, one per token.
  std::vector<actors::Segment> segments;
  actors::FinishReason finish = actors::FinishReason::End;
  std::vector<std::uint8_t> mask{};  ///< As in actors::Generated.
  std::vector<float> rewards{};      ///< As in actors::Generated.
  std::string failure{};             ///< Why it failed.
};

/// What one step did, for the card's time line.
enum class StepKind { Idle, Prefill, Decode };
struct StepResult {
  StepKind kind = StepKind::Idle;
  Tokens tokens;  ///< Prompt tokens prefilled or response tokens sampled.
  std::vector<Generation> finished;
};

/// Bytes the engine holds now, by kind.
struct EngineMemory {
  Bytes weights;
  Bytes kv;
  Bytes host;  ///< Parked outside the card's memory.
};

class Engine {
 public:
  virtual ~Engine() = default;

  /// Queues a response; it enters the batch when a slot is free.
  virtual void add(GenerationRequest request) = 0;
  /// One prefill or one decode step over the batch; a bounded piece of work.
  /// Requires: weights present and KV allocated unless idle.
  virtual Result<StepResult> step() = 0;
  /// Responses queued or in the batch.
  virtual std::size_t load() const = 0;
  /// Takes everything out, queued responses included; each keeps what it has (finish Interrupted).
  virtual std::vector<Generation> interrupt() = 0;
  /// The same for these responses, where they are still here; the rest goes on.
  virtual std::vector<Generation> withdraw(std::span<const ResponseId> ids) = 0;
  /// Forgets these responses if they are still here (work that has become void).
  virtual void cancel(std::span<const ResponseId> ids) = 0;

  /// Loads and checks new weights (a safetensors image) beside those in use. May run on another
  /// thread than step().
  virtual Status stage(PolicyVersion version, std::span<const std::byte> weights) = 0;
  /// Makes the staged weights current; running responses go on under them.
  /// Error: `version` is not what was staged, or is older than version().
  virtual Status commit(PolicyVersion version) = 0;
  virtual PolicyVersion version() const = 0;
  /// A successor of the orchestrator goes on from a checkpoint: forgets all responses and what is
  /// staged, keeps the rest; the next commit may be of an older version. False: it cannot.
  virtual bool begin_anew() { return false; }

  /// The memory half of a role switch. Requires for both: load() == 0.
  virtual Status free_kv() = 0;
  virtual Status allocate_kv() = 0;
  /// Drops the weights; the next stage() and commit() bring them back.
  virtual Status free_weights() = 0;
  virtual EngineMemory memory() const = 0;
};

}  // namespace rollout
}  // namespace temper
