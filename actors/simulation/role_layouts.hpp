// Layouts of the roles of a simulated run on their cards, the shapes of their computations, and
// layout checks. Functions take the run if only the run matters, and the settings of one actor if
// its cards matter.
//
// Assumptions. Trainer: distributed optimizer (ZeRO 1), sequence parallelism if tp > 1, bf16
// gradients: the published recipe of the 718B model, as in sim_hw/iteration/cluster.hpp. What
// `activations` keeps is decided once, for the longest micro-batch, under memory that leaves room
// for idle roles on the same cards: on a device two reserves, in host memory one copy of the
// weights and the optimizer states. Reference: its own model and layout (simulation.reference),
// or what is not given of the trainer's layout, reduced to what divides its cards and its model;
// without the adapter (SimulatedRun::adapter). Engine: if MTP modules draft, it has
// them, and the trainer trains and sends them; an EAGLE draft is the engine's own
// (role_memory.hpp). With prefill_cards, its last cards are the prefill instance, a second copy of
// the weights: with tp of the engine, and experts over as many devices as divides them and its
// devices.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/steps/drafts.hpp"

namespace temper::actors {

// For the run:
/// Longest prompt or response that the configuration can draw.
Tokens longest(const LengthConfig& lengths);
/// Tokens of the longest micro-batch: what it packs, or one longest sequence.
Tokens largest_micro_batch(const SimulatedRun& run);
/// The model of the trainer: with its MTP modules if they are trained.
sim_hw::ModelSpec trained_model(const SimulatedRun& run);
/// The model of references, and of engines besides drafts: without MTP modules.
sim_hw::ModelSpec served_model(const SimulatedRun& run);
/// The model that engines hold and get with each version: with MTP modules if these draft.
sim_hw::ModelSpec engine_model(const SimulatedRun& run);
/// What a checkpoint has: the adapter, or all weights without MTP modules.
std::int64_t trained_parameters(const SimulatedRun& run);
/// `micro_batches` per replica with one sequence of `tokens` each, rounded up to a multiple of what
/// tp and cp require.
sim_hw::TrainShape packed_shape(const SimulatedRun& run,
                                const sim_hw::Layout& layout,
                                std::int64_t micro_batches,
                                Tokens tokens);

// The checks say whether the layout divides the model and the cards, with no regard to memory.

// For the trainer:
/// Layout over the trainer's cards. dp is the remaining factor after tp, pp and cp; 0 if they need
/// more cards.
sim_hw::Layout trainer_layout(const SimulatedRun& run);
/// Shape of the trainer's update, including its mechanisms and the treatment of activations.
sim_hw::TrainShape training_shape(const SimulatedRun& run,
                                  const sim_hw::Layout& layout,
                                  std::int64_t micro_batches,
                                  Tokens tokens);
/// Error InvalidInput: names the violated constraint and the nearest layout that meets it.
Status check_trainer(const SimulatedRun& run);

// For a reference:
/// Layout over its cards: its own or the trainer's, reduced to what divides them.
sim_hw::Layout reference_layout(const SimulationSettings& reference);
/// Errors: see check_trainer().
Status check_reference(const SimulationSettings& reference);

// For a rollout engine:
/// What a decode step verifies, unless it drafts nothing
/// (SpeculationConfig::disable_by_batch_size).
sim_hw::Drafts engine_drafts(const SimulatedRun& run);
/// Layout over the cards that decode: all, or those besides `prefill_cards`.
sim_hw::RolloutLayout rollout_layout(const SimulationSettings& engine);
/// The prefill instance of an engine, as an engine of its own. Requires: prefill_cards > 0.
SimulationSettings prefill_instance(const SimulationSettings& engine);
/// Errors: see check_trainer().
Status check_rollout(const SimulationSettings& engine);

}  // namespace temper::actors
