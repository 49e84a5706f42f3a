// A trainer's state on disk, three files in a folder, each replaced atomically:
//   model.safetensors       the weights, by the names of Layout::stored(); metadata "updates"
//   optimizer.safetensors   "m.<tensor>" and "v.<tensor>"; metadata "updates"
//   trainer.json            {"format": 2, "updates": n, "optimizer_steps": n}
// With a critic, two more, critic.safetensors and critic_optimizer.safetensors, by the names of its
// layout, and "critic_optimizer_steps" in trainer.json. A trainer without a critic ignores them.
// If an adapter is trained, adapter_model.safetensors takes the place of model.safetensors, with
// the names of peft, and adapter_config.json lies beside it: peft can read the folder. All
// name the same number of updates; otherwise the folder is a mixture and is rejected.
#pragma once

#include "actors/policy/adamw.hpp"
#include "core/result.hpp"
#include "trainer/torch/trained_policy.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace temper::trainer {

struct CriticState {
  actors::FloatBuffer values;  ///< With the places of its layout.
  actors::AdamWState optimizer;
};

struct TrainerState {
  actors::FloatBuffer values;  ///< With the places of TrainedPolicy::values().
  actors::AdamWState optimizer;
  std::uint64_t updates = 0;
  std::optional<CriticState> critic;  ///< Read if a layout was given.
};

/// A critic to be saved; null: none.
struct CriticView {
  const actors::Weights* weights = nullptr;
  const actors::AdamWState* optimizer = nullptr;
};

/// Requires: the folder exists.
Status save_checkpoint(const std::filesystem::path& folder,
                       const TrainedPolicy& policy,
                       const actors::AdamWState& optimizer,
                       std::uint64_t updates,
                       const CriticView& critic = {});
/// Reads the state of a policy like this one, and of a critic with this layout. Errors name the
/// file and the tensor or key.
Result<TrainerState> load_checkpoint(const std::filesystem::path& folder,
                                     const TrainedPolicy& policy,
                                     const std::optional<actors::Layout>& critic = {});

}  // namespace temper::trainer
