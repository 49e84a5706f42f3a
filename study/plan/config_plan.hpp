// Plans both sides of a pipeline on simulated hardware: the layout of its trainer and that of its
// rollout engines, each on the cards that the placement gives it.
//
//   trainer   tp, pp, vpp, cp, ep, micro_batch_tokens and where the optimizer lives: the fastest
//             update of the run's first batch, among those of study/simulate/trainer_space.hpp that
//             fit the device and the host's share
//   rollout   tp, ep and kv_share: the most tokens/s of all engines, among the layouts and at the
//             rates of study/simulate/engine_space.hpp
// Both together must fit every phase of every card (actors/simulation/memory_phases.hpp): of
// the trainer's layouts, fastest first, the first that leaves room for an engine is taken, and
// beside it the engine of most tokens/s with the largest kv_share that fits, in steps of 0.01.
// What one side waits for of the other is not looked at: that is what `temper tune` searches.
// Placement, replicas, concurrency, lengths and batch stay as configured. One thread.
#pragma once

#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "sim_hw/plan/rollout_search.hpp"
#include "study/simulate/engine_space.hpp"
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
  actors::ActorMemory memory;  ///< At its fullest.

  double tokens_per_second = 0;  ///< Of the batch.

  /// Summands of the update, by name.
  std::vector<std::pair<std::string_view, double>> entries() const;
};

struct EngineChoice {
  actors::RolloutEngineConfig layout;
  EngineRate rate;               ///< Of one engine.
  double tokens_per_second = 0;  ///< Of all.
  actors::ActorMemory memory;
};

struct ConfigPlan {
  orchestrator::PipelineConfig config;  ///< The given one with the layouts that were chosen.
  std::int64_t trainer_cards = 0;
  std::int64_t engines = 0;
  std::int64_t engine_cards = 0;
  sim_hw::HardwareSpec trainer_hardware, engine_hardware;
  double device_memory = 0;             ///< Of the trainer's devices.
  double host_memory = 0;               ///< A device's share.
  sim_hw::RolloutLengths lengths;       ///< Of the first batch.
  std::vector<TrainerChoice> trainers;  ///< Fastest first; the first is the chosen one.
  std::vector<EngineChoice> rollouts;   ///< Most tokens/s first, beside the chosen trainer.
  std::optional<TrainerChoice> configured_trainer;  ///< None: it does not divide the cards.
  std::optional<EngineChoice> configured_rollout;   ///< Likewise, or has no room for a response.
  std::int64_t scenarios = 0;                       ///< Layouts of the trainer that fit.
};

/// Which side stays as configured.
enum class Keep { Neither, Trainer, Rollout };

/// Error OutOfMemory: nothing fits; with the ledger of the best try. Requires: a configuration that
/// validate() accepts but for its layouts, on simulated hardware.
Result<ConfigPlan> plan_config(const orchestrator::PipelineConfig& config,
                               Keep keep = Keep::Neither);

}  // namespace temper::study
