// A trainer's state on disk, three files in a folder, each replaced atomically:
//   model.safetensors       the weights, by the names of Layout::stored(); metadata "updates"
//   optimizer.safetensors   "m.<tensor>" and "v.<tensor>"; metadata "updates"
//   trainer.json            {"format": 2, "updates": n, "optimizer_steps": n}
// All three name the same number of updates; otherwise the folder is a mixture and is rejected.
#pragma once

#include "actors/policy/adamw.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <filesystem>

namespace temper::trainer {

struct TrainerState {
  actors::Weights weights;
  actors::AdamWState optimizer;
  std::uint64_t updates = 0;
};

/// Requires: the folder exists.
Status save_checkpoint(const std::filesystem::path& folder,
                       const actors::Weights& weights,
                       const actors::AdamWState& optimizer,
                       std::uint64_t updates);
/// Errors name the file and the tensor or key.
Result<TrainerState> load_checkpoint(const std::filesystem::path& folder,
                                     const actors::Layout& layout);

}  // namespace temper::trainer
