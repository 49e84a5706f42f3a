// The layouts of a simulated rollout engine that a search may try, and how fast each of them
// generates. One space for all who choose a layout, as trainer_space.hpp is for the trainer's.
//
//   tp  divisors of the attention heads that divide the engine's devices
//   ep  divisors of the experts that divide them
//
// Rate: an engine runs the responses that its concurrency allows and its cache holds with two
// standard deviations to spare (sim_hw/plan/rollout_search.hpp), at the cost that a run is charged
// (rollout/simulated/engine_cost.hpp). Pure functions.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "sim_hw/plan/rollout_search.hpp"

#include <cstdint>
#include <vector>

namespace temper::study {

/// Fewest devices to a replica first, then fewest to share the experts.
std::vector<std::int64_t> engine_tps(const sim_hw::ModelSpec& model, std::int64_t devices);
std::vector<std::int64_t> engine_eps(const sim_hw::ModelSpec& model, std::int64_t devices);

/// How one engine generates responses of these lengths, all of its slots taken.
struct EngineRate {
  std::int64_t replicas = 0;  ///< Of attention.
  std::int64_t running = 0;   ///< Responses.
  double step = 0;            ///< Seconds of a decode step.
  double prefill = 0;         ///< Of prompts, for each step.

  /// Of one response.
  double token_seconds() const { return step + prefill; }
  double tokens_per_second() const { return static_cast<double>(running) / token_seconds(); }
};
/// One of the engines that a placement has. `run.config.rollout`: its layout.
actors::SimulationSettings engine_settings(const actors::SimulatedRun& run,
                                           const orchestrator::PipelineConfig& config,
                                           const orchestrator::PlacementConfig& cards);
/// Requires: actors::check_rollout(engine), room for one longest response.
EngineRate engine_rate(const actors::SimulationSettings& engine,
                       const sim_hw::RolloutLengths& lengths);

}  // namespace temper::study
