// A trainer's state on disk, three files in a folder, each replaced atomically:
//   model.safetensors       the weights, by the names of Layout::stored(); metadata "updates"
//   optimizer.safetensors   "m.<tensor>" and "v.<tensor>"; metadata "updates"
//   trainer.json            {"format": 2, "updates": n, "optimizer_steps": n}
// If an adapter is trained, adapter_model.safetensors takes the place of model.safetensors, with
// the names of peft, and adapter_config.json lies beside it: peft can read the folder. All three
// name the same number of updates; otherwise the folder is a mixture and is rejected.
#pragma once

#include "actors/policy/adamw.hpp"
#include "core/result.hpp"
#include "trainer/torch/trained_policy.hpp"

#include <cstdint>
#include <filesystem>

namespace temper::trainer {

struct TrainerState {
  actors::FloatBuffer values;  ///< With the places of TrainedPolicy::values().
  actors::AdamWState optimizer;
  std::uint64_t updates = 0;
};

/// Requires: the folder exists.
Status save_checkpoint(const std::filesystem::path& folder,
                       const TrainedPolicy& policy,
                       const actors::AdamWState& optimizer,
                       std::uint64_t updates);
/// Reads the state of a policy like this one. Errors name the file and the tensor or key.
Result<TrainerState> load_checkpoint(const std::filesystem::path& folder,
                                     const TrainedPolicy& policy);

}  // namespace temper::trainer
