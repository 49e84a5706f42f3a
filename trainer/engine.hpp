// The interface between a trainer actor and its engine: one step from a batch, its weights as a
// safetensors image, its complete state on disk, and an optimizer that can be offloaded. Not
// thread-safe.
#pragma once

#include "actors/protocol/top_tokens.hpp"
#include "actors/protocol/update_metrics.hpp"
#include "core/describe.hpp"
#include "core/result.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace temper::trainer {

/// One response of the batch. Log-probs have one entry per response token.
struct TrainSample {
  GroupId group;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
  /// Recorded when sampled, possibly from several versions.
  std::vector<float> behaviour_logprobs;
  std::vector<float> reference_logprobs;  ///< Empty if the run has no reference.
  double reward = 0;
  /// For each response token 1 if the policy sampled it, else 0; empty: all 1. Later tokens attend
  /// to one that it did not sample (from a tool or a user turn), but it has no loss.
  std::vector<std::uint8_t> mask{};
  ResponseId id{};  ///< For error messages.
  /// For each response token by how many versions the one that sampled it is older than the one
  /// that this step updates; empty: all 0.
  std::vector<std::int32_t> ages{};
  /// For each response token the reward that an environment gave at it; empty: none. `reward`
  /// contains their sum.
  std::vector<float> token_rewards{};
  actors::TopTokens top{};  ///< Of the reference; empty without `distillation_top_k`.

  bool is_trained(std::size_t token) const { return mask.empty() || mask[token] != 0; }
  std::int32_t age(std::size_t token) const { return ages.empty() ? 0 : ages[token]; }
  std::size_t trained_tokens() const {
    return mask.empty() ? response.size()
                        : mask.size() - static_cast<std::size_t>(std::ranges::count(mask, 0));
  }
};

using actors::UpdateMetrics;

struct TrainerMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes host;  ///< Offloaded to host memory.
};

using ImageWriter = std::function<Status(std::span<const std::byte>)>;

class Engine {
 public:
  virtual ~Engine() = default;

  /// Computes the gradients of complete groups of the next step and keeps them. That step must
  /// contain these groups; it computes only the gradients of the others, with the same result.
  /// Error: samples that no step could contain; an algorithm whose gradients depend on the rest of
  /// the batch (needs_whole_batch()).
  virtual Status prepare(std::span<const TrainSample> groups) = 0;
  /// One step. Kept gradients are dropped in either case. On error the weights are unchanged,
  /// except after NotFinite: they may then be of no version, and until load() every call that needs
  /// them returns that error.
  virtual Result<UpdateMetrics> update(std::span<const TrainSample> batch) = 0;
  /// Writes the current weights as a safetensors image, in parts; returns the first error of
  /// `write`. An error ends the actor.
  virtual Status publish(const ImageWriter& write) const = 0;
  /// The same image in memory. Errors: those of publish().
  Result<std::string> weights() const;
  /// Writes weights, optimizer and counters into an existing folder / reads them back. Errors name
  /// the file: Io; load() also returns NotFound or Corrupt for a missing or damaged file, and
  /// Unavailable while the optimizer is offloaded. After an error load() has changed nothing.
  virtual Status save(const std::filesystem::path& folder) const = 0;
  virtual Status load(const std::filesystem::path& folder) = 0;

  /// Offloads the optimizer to host memory (and drops gradients), and loads it back; bit-exact.
  /// Error: gradients are kept for the next step.
  virtual Status offload() = 0;
  virtual Status onload() = 0;
  virtual TrainerMemory memory() const = 0;
};

}  // namespace temper::trainer
