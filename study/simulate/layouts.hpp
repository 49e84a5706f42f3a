// Completes a configuration on simulated hardware with what its memory allows and the cost model
// already knows, so that a search need not try it run by run:
//   trainer   the layout of trainer_space.hpp whose update of the run's first batch is fastest,
//             of those that every phase of every card's memory allows
//   rollout   ep of engine_space.hpp: the most tokens/s at the engine's tp and slots; kv_share: the
//             largest that fits, in steps of 0.05
// Answers are remembered, so one chooser serves configurations that differ in placement, replicas,
// concurrency, rollout layout and prepared gradients alone. One thread.
#pragma once

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/packing.hpp"
#include "actors/simulation/role_memory.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "study/simulate/first_batch.hpp"
#include "study/simulate/trainer_space.hpp"

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace temper::study {

class LayoutChooser {
 public:
  /// Requires: the configurations to complete have the cluster, model, lengths and batch of this
  /// one, which is simulated. Errors: lengths that cannot be drawn.
  static Result<LayoutChooser> create(const orchestrator::ResolvedPipeline& like);

  /// From now on a device may use no more than this. Requires: before the first complete().
  void limit_memory(Bytes most) { most_ = std::min(most_, static_cast<double>(most.count())); }

  /// `cards`: resolve_placement() of the configuration. Error OutOfMemory: no layout of the
  /// trainer, or none beside the rest, fits.
  Result<orchestrator::PipelineConfig> complete(orchestrator::PipelineConfig config,
                                                const orchestrator::PlacementConfig& cards);

 private:
  /// All of a configuration that memory depends on and complete() does not choose.
  using Key = std::array<std::int64_t, 10>;
  struct Completion {
    actors::TrainerEngineConfig trainer;
    std::int64_t ep = 1;
    double kv_share = 0;
  };

  LayoutChooser(actors::SimulatedRun run, const FirstBatch& batch)
      : run_(std::move(run)), packings_(batch.sequences()), lengths_(batch.lengths()) {}
  /// The trainer's layouts on so many cards that are worth trying, fastest first.
  const std::vector<actors::TrainerEngineConfig>& trainers(std::int64_t cards);
  /// What completes a configuration. An error if no layout fits.
  Result<Completion> choose(orchestrator::PipelineConfig config,
                            const orchestrator::PlacementConfig& cards);
  std::int64_t engine_devices(const orchestrator::PipelineConfig& config,
                              const orchestrator::PlacementConfig& cards) const;
  /// Of an engine, fewest first.
  std::vector<std::int64_t> eps_of(const orchestrator::PipelineConfig& config,
                                   const orchestrator::PlacementConfig& cards) const;
  /// The ep of most tokens/s beside a trainer that is set, with its cache, from an answer with the
  /// widest. `kept` as below.
  Completion fastest_engine(const orchestrator::PipelineConfig& config,
                            const orchestrator::PlacementConfig& cards,
                            actors::SimulatedPlacement placement,
                            double kept,
                            Completion widest);
  /// The largest KV share that fits, in twentieths of the memory, beside `kept` more bytes in the
  /// host memory of a device; none: no share fits.
  std::optional<int> largest_kv_share(actors::SimulatedPlacement placement, double kept);
  /// NoCache: the layout cannot be, or its cache cannot hold one longest response.
  enum class Fit { Fits, TooLarge, NoCache };
  Fit fit(const actors::SimulatedPlacement& placement, double kept) const;

  actors::SimulatedRun run_;
  actors::Packings packings_;       ///< Of one update's batch, prompts and responses together.
  sim_hw::RolloutLengths lengths_;  ///< Of the same.
  /// Bytes that a device may use, if it has them.
  double most_ = std::numeric_limits<double>::infinity();
  std::map<std::int64_t, std::vector<actors::TrainerEngineConfig>> trainers_;
  std::map<Key, Result<Completion>> completions_;
  int last_share_ = 1;  ///< Where the next search for one begins; no part of any answer.
};

}  // namespace temper::study
