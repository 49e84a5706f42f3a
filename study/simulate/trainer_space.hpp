// The layouts of a simulated trainer that a search may try, and the update time of each. All users
// of layouts share this space: `temper tune`, `temper plan`, `temper ladder` and `temper sweep
// --fit`.
//
//   tp                  divisors of the attention heads
//   cp                  powers of two
//   pp                  any number of stages up to the layers that leaves whole replicas
//   vpp                 divisors of the layers of a stage, and values that the schedule requires
//   ep                  divisors of the experts
//   micro_batch_tokens  4K, 8K, 16K, 32K
//   optimizer_on_host   off and on
//
// The time is that of one update of a batch, by the equation that a run is charged
// (trainer/simulated/update_cost.hpp).
#pragma once

#include "actors/simulation/packing.hpp"
#include "actors/simulation/simulation_config.hpp"

#include <cstdint>
#include <vector>

namespace temper::study {

struct RankedTrainer {
  actors::TrainerEngineConfig layout;
  double seconds = 0;       ///< Per update.
  double device_bytes = 0;  ///< For the fullest device.
  double host_bytes = 0;    ///< In a device's share of its host.
};

/// All layouts on `run.trainer_cards` that can run within `most_bytes` per device and within the
/// devices' shares of host memory; fastest first.
std::vector<RankedTrainer> rank_trainers(actors::SimulatedRun run,
                                         double most_bytes,
                                         actors::Packings& packings);

/// Indices into `ranked` (fastest first) of the Pareto-optimal layouts: no faster one needs less
/// memory on the device and the host. These are worth trying with other roles on the same cards.
std::vector<std::size_t> pareto_optimal(const std::vector<RankedTrainer>& ranked);

}  // namespace temper::study
