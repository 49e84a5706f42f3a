// The first batch of a simulated run, with the lengths that its seed draws. Searches judge layouts
// by it before any run. Values only.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "sim_hw/plan/rollout_search.hpp"

#include <cstdint>
#include <vector>

namespace temper::study {

struct FirstBatch {
  std::uint64_t group_size = 1;   ///< Responses per prompt.
  std::vector<Tokens> prompts;    ///< One per group.
  std::vector<Tokens> responses;  ///< Group by group.

  Tokens prompt_of(std::size_t response) const { return prompts[response / group_size]; }
  /// Length of prompt and response together, for every response.
  std::vector<Tokens> sequences() const;
  /// Length statistics of the rollout.
  sim_hw::RolloutLengths lengths() const;
};

/// `simulation`: from resolve(), with its length files already read.
FirstBatch draw_first_batch(const orchestrator::PipelineConfig& config,
                            const actors::SimulationConfig& simulation);

}  // namespace temper::study
