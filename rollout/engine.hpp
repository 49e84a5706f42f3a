// The interface between a rollout actor and its engine: continuous batching over a set of
// responses, weights that are staged during generation and committed between two steps, and memory
// that can be released for a role switch. Not thread-safe, except stage().
#pragma once

#include "actors/protocol/sample.hpp"
#include "core/result.hpp"

#include <optional>
#include <span>
#include <vector>

namespace temper {
namespace rollout {

/// What happens to running responses when weights change. KeepKv: they continue with the new
/// weights and their KV cache, so that later tokens are sampled from neither version's policy.
/// Recompute: the same with a cache that is recomputed under the new weights. Finish: they end
/// under the weights that began them.
enum class OnNewWeights { KeepKv, Recompute, Finish };

}  // namespace rollout

template <>
struct EnumNames<rollout::OnNewWeights> {
  using O = rollout::OnNewWeights;
  static constexpr std::array<std::pair<O, std::string_view>, 3> value{
      {{O::KeepKv, "keep_kv"}, {O::Recompute, "recompute"}, {O::Finish, "finish"}}};
};

namespace rollout {

struct SamplingConfig {
  double temperature = 1.0;
  double top_p = 1.0;
  Tokens max_new_tokens{8};
};

void describe(auto& v, SamplingConfig& c) {
  v.field(1,
          "temperature",
          c.temperature,
          {.doc = "Divides the logits. Recorded log-probs are those of the resulting distribution.",
           .min = 0.01,
           .max = 100.0});
  v.field(
      2,
      "top_p",
      c.top_p,
      {.doc =
           "Nucleus sampling: sample from the smallest set of tokens with this total probability.",
       .min = 0.01,
       .max = 1.0});
  v.field(3,
          "max_new_tokens",
          c.max_new_tokens,
          {.doc = "Largest response length, in tokens.", .min = Tokens(1)});
}

/// One response to generate. `prefix` holds the tokens of an interrupted attempt: they count
/// towards max_new_tokens and are recomputed, not sampled again. The random stream of a response
/// is fixed by `seed`, its id and the token's position, whatever else is in the batch.
struct GenerationRequest {
  ResponseId id;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> prefix{};
  std::optional<Tokens> most{};       ///< Limit of new tokens; nullopt: what max_new_tokens leaves.
  std::vector<std::int32_t> stops{};  ///< Tokens that end it in addition to the model's.
  bool greedy = false;  ///< Take the most likely token; its log-prob is still that of the sampler.
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
  std::string failure{};             ///< Reason of a failure; empty otherwise.
};

/// What one step did, for the device's time line. Tools: all responses waited for their agents.
enum class StepKind { Idle, Prefill, Decode, Tools };
struct StepResult {
  StepKind kind = StepKind::Idle;
  Tokens tokens;  ///< Prompt tokens prefilled or response tokens sampled.
  std::vector<Generation> finished;
};

/// Bytes that the engine holds now.
struct EngineMemory {
  Bytes weights;
  Bytes kv;
  Bytes host;  ///< Offloaded to host memory.
};

/// Error InvalidInput, which names the action `what`, unless `load` (responses) is 0.
Status require_idle(std::size_t load, std::string_view what);

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
  /// Removes all responses, queued ones included, and returns their tokens (finish Interrupted);
  /// with OnNewWeights::Finish without tokens, since another attempt may be under other weights.
  virtual std::vector<Generation> interrupt() = 0;
  /// As interrupt(), for these responses if present; others continue.
  virtual std::vector<Generation> withdraw(std::span<const ResponseId> ids) = 0;
  /// Drops these responses if present.
  virtual void cancel(std::span<const ResponseId> ids) = 0;

  /// Loads and verifies new weights (a safetensors image) beside those in use. May run on another
  /// thread than step(). `weights` is not kept. Errors: Corrupt for a damaged image; Io. An error
  /// leaves the weights in use as they are.
  virtual Status stage(PolicyVersion version, std::span<const std::byte> weights) = 0;
  /// Makes the staged weights current: for responses that begin later, and as OnNewWeights says
  /// for running ones.
  /// Error: `version` was not staged, or is older than version().
  virtual Status commit(PolicyVersion version) = 0;
  virtual PolicyVersion version() const = 0;
  /// A restarted orchestrator resumes from a checkpoint: drops all responses and what is
  /// staged, keeps the rest; the next commit may be an older version. False: not supported.
  virtual bool reset_for_resume() { return false; }

  /// Release and allocate memory for a role switch. Errors: InvalidInput unless load() == 0;
  /// otherwise those of the inference server, if there is one.
  virtual Status free_kv() = 0;
  virtual Status allocate_kv() = 0;
  /// Drops the weights; the next stage() and commit() load them again. Requires: load() == 0.
  /// Errors: as free_kv().
  virtual Status free_weights() = 0;
  virtual EngineMemory memory() const = 0;
};

}  // namespace rollout
}  // namespace temper
