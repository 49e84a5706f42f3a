// How the roles of a simulated run lie on their cards: layouts, the shape of what they compute, and
// whether a layout can be. A function takes the run where the run alone decides, and the settings
// of one actor where its own cards do.
//
// Assumed. Trainer: distributed optimizer (ZeRO 1), sequence parallelism where tp > 1, every layer
// recomputed, bf16 gradients, MTP modules not trained: the published recipe of the 718B model, as
// sim_hw/iteration/cluster.hpp has it. Reference: the trainer's layout, cut down to what divides
// its cards. Engine: bf16 weights and cache.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

namespace temper::actors {

// Of the run.
/// Longest prompt or response that the configuration can draw.
Tokens longest(const LengthConfig& lengths);
/// Tokens of the longest micro-batch: what it packs, or one longest sequence.
Tokens largest_micro_batch(const SimulatedRun& run);
/// The model as it is trained: without MTP modules.
sim_hw::ModelSpec trained_model(const SimulatedRun& run);
/// `micro_batches` of each replica, one sequence of `tokens` each, rounded up to what tp and cp
/// divide.
sim_hw::TrainShape packed_shape(const SimulatedRun& run,
                                const sim_hw::Layout& layout,
                                std::int64_t micro_batches,
                                Tokens tokens);

// The checks say whether the layout divides the model and the cards, and name the nearest that
// does, with no regard to memory.

// Of the trainer.
/// Over the trainer's cards; dp is what tp, pp and cp leave, 0 where they need more.
sim_hw::Layout trainer_layout(const SimulatedRun& run);
/// The shape of the trainer's update, with its mechanisms.
sim_hw::TrainShape training_shape(const SimulatedRun& run,
                                  const sim_hw::Layout& layout,
                                  std::int64_t micro_batches,
                                  Tokens tokens);
Status check_trainer(const SimulatedRun& run);

// Of a reference.
/// Over its cards: the trainer's, cut down to what divides them.
sim_hw::Layout reference_layout(const SimulationSettings& reference);
Status check_reference(const SimulationSettings& reference);

// Of a rollout engine.
/// Over its cards.
sim_hw::RolloutLayout rollout_layout(const SimulationSettings& engine);
Status check_rollout(const SimulationSettings& engine);

}  // namespace temper::actors
