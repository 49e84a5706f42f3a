// The layouts of a simulated rollout engine that a search may try, and the generation rate of each.
// All searches share this space, like that of trainer_space.hpp for the trainer.
//
//   tp  divisors of the attention heads that divide the engine's devices
//   ep  divisors of the experts with redundant ones that divide them
//
// Rate: an engine runs the responses that its concurrency allows and that its cache holds with two
// standard deviations to spare (sim_hw/plan/rollout_search.hpp), at the cost that a run is charged
// (rollout/simulated/engine_cost.hpp). Pure functions.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "sim_hw/plan/rollout_search.hpp"

#include <cstdint>
#include <vector>

namespace temper::study {

/// Fewest devices per replica first, then fewest devices that share the experts.
std::vector<std::int64_t> engine_tps(const sim_hw::ModelSpec& model, std::int64_t devices);
/// Empty if no such number of devices has each copy of an expert on another one.
std::vector<std::int64_t> engine_eps(const sim_hw::ModelSpec& model,
                                     std::int64_t redundant_experts,
                                     std::int64_t devices);

/// Generation rate of an engine for responses of these lengths, with all of its slots taken.
struct EngineRate {
  std::int64_t replicas = 0;  ///< Attention replicas.
  std::int64_t running = 0;   ///< Running responses.
  double step = 0;            ///< Seconds of a decode step.
  double prefill = 0;         ///< Seconds of prefill per decode step.

  /// Seconds per token of one response.
  double token_seconds() const { return step + prefill; }
  double tokens_per_second() const { return static_cast<double>(running) / token_seconds(); }
};
/// Settings of one engine of a placement. `run.config.rollout` is its layout.
actors::SimulationSettings engine_settings(const actors::SimulatedRun& run,
                                           const orchestrator::PipelineConfig& config,
                                           const orchestrator::PlacementConfig& cards);
/// Requires: actors::check_rollout(engine); room for one longest response.
EngineRate engine_rate(const actors::SimulationSettings& engine,
                       const sim_hw::RolloutLengths& lengths);

}  // namespace temper::study
