// Plans both sides of a pipeline on simulated hardware: the layout of its trainer and of its
// rollout engines, each on the cards of the placement.
//
//   trainer   tp, pp, vpp, cp, ep, micro_batch_tokens and the place of the optimizer: the fastest
//             update of the run's first batch, among those of study/simulate/trainer_space.hpp that
//             fit the device and the host's share
//   rollout   tp, ep and kv_share: the most tokens/s of all engines, among the layouts and at the
//             rates of study/simulate/engine_space.hpp
//   reference with a model of its own: the fastest scoring of that batch, among the layouts
//             of study/simulate/reference_space.hpp
// All together must fit every phase of every card (actors/simulation/memory_phases.hpp): the first
// of the trainer's layouts, fastest first, that leaves room for an engine, with the engine that has
// the most tokens/s and the largest kv_share that fits, in steps of 0.01. Waits between the two
// sides are not considered; `temper tune` searches those.
// Placement, replicas, concurrency, lengths and batch stay as configured. One thread.
#pragma once

#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "sim_hw/plan/rollout_search.hpp"
#include "study/simulate/engine_space.hpp"
#include "study/simulate/reference_space.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::study {

struct TrainerChoice {
  actors::TrainerEngineConfig layout;
  std::int64_t dp = 0;
  trainer::UpdateCost cost;
  actors::ActorMemory memory;  ///< Peak.

  double tokens_per_second = 0;  ///< For the batch.

  /// Summands of the update, by name.
  std::vector<std::pair<std::string_view, double>> entries() const;
};

struct EngineChoice {
  actors::RolloutEngineConfig layout;
  EngineRate rate;               ///< Rate of one engine.
  double tokens_per_second = 0;  ///< For all engines.
  actors::ActorMemory memory;
};

struct ConfigPlan {
  orchestrator::PipelineConfig config;  ///< The given configuration with the chosen layouts.
  std::int64_t trainer_cards = 0;
  std::int64_t engines = 0;
  std::int64_t engine_cards = 0;
  sim_hw::HardwareSpec trainer_hardware, engine_hardware;
  double device_memory = 0;             ///< For the trainer's devices.
  double host_memory = 0;               ///< A device's share.
  sim_hw::RolloutLengths lengths;       ///< For the first batch.
  std::vector<TrainerChoice> trainers;  ///< Fastest first; the first one is chosen.
  std::vector<EngineChoice> rollouts;   ///< Most tokens/s first, with the chosen trainer.
  std::optional<TrainerChoice> configured_trainer;  ///< None: it does not divide the cards.
  std::optional<EngineChoice>
      configured_rollout;  ///< None: it does not divide the cards, or has no room for a response.
  std::int64_t reference_cards = 0;          ///< Of one reference.
  std::optional<RankedReference> reference;  ///< None: it follows the trainer's layout.
  std::int64_t scenarios = 0;                ///< Number of trainer layouts that fit.
};

/// The side that stays as configured.
enum class FixedSide { Neither, Trainer, Rollout };

/// Error OutOfMemory: nothing fits; includes the ledger of the nearest layout. Requires: a
/// configuration on simulated hardware that validate() accepts except for its layouts.
Result<ConfigPlan> plan_config(const orchestrator::PipelineConfig& config,
                               FixedSide keep = FixedSide::Neither);

}  // namespace temper::study
