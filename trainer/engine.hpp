// What a trainer actor needs of its engine: one policy update from a batch, its weights as a
// safetensors image, its whole state on disk, and an optimizer that can leave the card's memory.
// Not thread-safe.
#pragma once

#include "actors/protocol/update_metrics.hpp"
#include "core/describe.hpp"
#include "core/result.hpp"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace temper::trainer {

/// One response of the batch. Log-probs have one entry per response token.
struct TrainSample {
  GroupId group;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
  std::vector<float> behaviour_logprobs;  ///< As recorded when sampled, over versions if mixed.
  std::vector<float> reference_logprobs;  ///< Empty where the run has no reference.
  double reward = 0;
  /// Per response token 1 where the policy sampled it, else 0; empty: all 1. A token that it did
  /// not sample (of a tool, of a user's turn) is seen by those after it, and has no loss.
  std::vector<std::uint8_t> mask{};
  ResponseId id{};  ///< Errors name it.

  bool is_trained(std::size_t token) const { return mask.empty() || mask[token] != 0; }
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
  Bytes host;  ///< Parked outside the card's memory.
};

class Engine {
 public:
  virtual ~Engine() = default;

  /// Computes the gradients of whole groups of the next update and keeps them. That update must
  /// hold these groups, and computes those of the others alone: it is the same update.
  /// Error: samples that no update could hold; an algorithm whose gradients depend on the rest of
  /// the batch (needs_whole_batch()).
  virtual Status prepare(std::span<const TrainSample> groups) = 0;
  /// One update. Either all of it happens or, on error, the weights are as before; gradients that
  /// were kept are gone in both cases.
  virtual Result<UpdateMetrics> update(std::span<const TrainSample> batch) = 0;
  /// The current weights as a safetensors image.
  virtual Result<std::string> weights() const = 0;
  /// Writes weights, optimizer and counters into an existing folder / reads them back.
  virtual Status save(const std::filesystem::path& folder) const = 0;
  virtual Status load(const std::filesystem::path& folder) = 0;

  /// Moves the optimizer (and drops gradients) to host memory and back; bit-exact. Error: gradients
  /// are kept for the next update.
  virtual Status offload() = 0;
  virtual Status onload() = 0;
  virtual TrainerMemory memory() const = 0;
};

}  // namespace temper::trainer
