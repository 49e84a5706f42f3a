// The layouts of a simulated trainer that a search may try, and how fast each of them updates. One
// space for all who choose a layout: `temper tune`, `temper plan`, `temper ladder` and
// `temper sweep --fit`.
//
//   tp                  divisors of the attention heads
//   cp                  powers of two
//   pp                  any number of stages up to the layers that leaves whole replicas
//   vpp                 divisors of the layers of a stage, and what the schedule asks for
//   ep                  divisors of the experts
//   micro_batch_tokens  4K, 8K, 16K, 32K
//   optimizer_on_host   both
//
// Time is that of one update of a batch by the equation that a run is charged
// (trainer/simulated/update_cost.hpp).
#pragma once

#include "actors/simulation/packing.hpp"
#include "actors/simulation/simulation_config.hpp"

#include <cstdint>
#include <vector>

namespace temper::study {

struct RankedTrainer {
  actors::TrainerEngineConfig layout;
  double seconds = 0;       ///< Of an update.
  double device_bytes = 0;  ///< Of the fullest device.
  double host_bytes = 0;    ///< Of a device's share of its host.
};

/// All layouts on `run.trainer_cards` that can run and whose devices need no more than
/// `most_bytes` each, nor more of the host than their share; fastest first.
std::vector<RankedTrainer> rank_trainers(actors::SimulatedRun run,
                                         double most_bytes,
                                         actors::Packings& packings);

/// Places in `ranked`, which is fastest first, of the layouts that no faster one beats in memory of
/// the device and of the host: what is worth trying beside other roles on the same cards.
std::vector<std::size_t> undominated(const std::vector<RankedTrainer>& ranked);

}  // namespace temper::study
