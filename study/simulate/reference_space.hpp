// The layouts of a simulated reference with a model of its own that a search may try, and the time
// of scoring a batch with each. A reference with the policy's model follows the trainer's layout.
//
//   tp   divisors of the attention heads
//   cp   powers of two
//   pp   any number of stages up to the layers that leaves whole replicas
//   ep   divisors of the experts
//
// The time is that of the passes over a batch, by the equation that a run is charged
// (actors/simulation/simulated_reference.hpp). Its micro-batches are the trainer's.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <vector>

namespace temper::study {

struct RankedReference {
  actors::ReferenceEngineConfig layout;
  double seconds = 0;       ///< Of the passes over a batch.
  double device_bytes = 0;  ///< For the fullest device.
};

/// The Pareto-optimal layouts within `most_bytes` per device, fastest first: none that is faster
/// needs less memory. `reference`: settings of the actor. `batch`: lengths of the sequences.
/// Requires: passes.responses <= batch.size().
std::vector<RankedReference> rank_references(actors::SimulationSettings reference,
                                             double most_bytes,
                                             const std::vector<Tokens>& batch,
                                             const orchestrator::ScoringPasses& passes);

}  // namespace temper::study
