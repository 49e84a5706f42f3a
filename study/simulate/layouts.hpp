// Completes a configuration on simulated hardware with settings that follow from its memory and the
// cost model, so that a search need not try them in runs:
//   trainer   the layout of trainer_space.hpp with the fastest update of the run's first batch,
//             among those that fit every memory phase of every card
//   reference with a model of its own: the layout of reference_space.hpp with the fastest scoring
//             of that batch, among those that fit with the trainer
//   rollout   ep of engine_space.hpp: the most tokens/s at the engine's tp and slots; kv_share: the
//             largest that fits, in steps of 0.05
// Results are cached, so one chooser serves configurations that differ only in placement, replicas,
// concurrency, rollout layout and prepared gradients. One thread.
#pragma once

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/packing.hpp"
#include "actors/simulation/role_memory.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "study/simulate/first_batch.hpp"
#include "study/simulate/reference_space.hpp"
#include "study/simulate/trainer_space.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace temper::study {

class LayoutChooser {
 public:
  /// Requires: the configurations to complete have the cluster, model, lengths and batch of `like`,
  /// which is simulated. Errors: lengths that cannot be drawn.
  static Result<LayoutChooser> create(const orchestrator::ResolvedPipeline& like);

  /// Limits the memory of every device. Requires: before the first complete().
  void limit_memory(Bytes most) { most_ = std::min(most_, static_cast<double>(most.count())); }

  /// `cards`: resolve_placement() of the configuration. Error OutOfMemory: no layout of the trainer
  /// or the reference fits, by itself or with the other roles.
  Result<orchestrator::PipelineConfig> complete(orchestrator::PipelineConfig config,
                                                const orchestrator::PlacementConfig& cards);

 private:
  /// All settings that memory depends on and complete() does not choose.
  using Key = std::array<std::int64_t, 10>;
  struct Completion {
    actors::TrainerEngineConfig trainer;
    actors::ReferenceEngineConfig reference;
    std::int64_t ep = 1;
    double kv_share = 0;
  };

  LayoutChooser(actors::SimulatedRun run, const FirstBatch& batch)
      : run_(std::move(run)),
        sequences_(batch.sequences()),
        packings_(sequences_),
        lengths_(batch.lengths()) {}
  /// Trainer layouts on this many cards worth trying, fastest first.
  const std::vector<actors::TrainerEngineConfig>& trainers(std::int64_t cards);
  /// Layouts of the reference worth trying, fastest first: its own alone, unless its model is not
  /// the policy's.
  const std::vector<RankedReference>& references(const orchestrator::PipelineConfig& config,
                                                 const orchestrator::PlacementConfig& cards,
                                                 const actors::SimulatedPlacement& placement);
  /// Chooses the missing settings. Error: no layout fits.
  Result<Completion> choose(orchestrator::PipelineConfig config,
                            const orchestrator::PlacementConfig& cards);
  std::int64_t engine_devices(const orchestrator::PipelineConfig& config,
                              const orchestrator::PlacementConfig& cards) const;
  /// ep values of an engine, fewest devices first.
  std::vector<std::int64_t> eps_of(const orchestrator::PipelineConfig& config,
                                   const orchestrator::PlacementConfig& cards) const;
  /// The ep with the most tokens/s for this trainer, with its cache, starting from a result with
  /// the largest ep. `kept`: see largest_kv_share().
  Completion fastest_engine(const orchestrator::PipelineConfig& config,
                            const orchestrator::PlacementConfig& cards,
                            actors::SimulatedPlacement placement,
                            double kept,
                            const Completion& widest);
  /// The largest KV share, in twentieths of the memory, that fits with `kept` more bytes in a
  /// device's host memory; nullopt: no share fits.
  std::optional<int> largest_kv_share(actors::SimulatedPlacement placement, double kept);
  /// NoCache: an invalid layout, or a cache too small for one longest response.
  enum class Fit { Fits, TooLarge, NoCache };
  Fit fit(const actors::SimulatedPlacement& placement, double kept) const;

  actors::SimulatedRun run_;
  std::vector<Tokens> sequences_;   ///< Of one update's batch, prompts and responses together.
  actors::Packings packings_;       ///< For the same batch.
  sim_hw::RolloutLengths lengths_;  ///< For the same batch.
  /// Limit on the bytes of a device.
  double most_ = std::numeric_limits<double>::infinity();
  std::map<std::int64_t, std::vector<actors::TrainerEngineConfig>> trainers_;
  /// By cards of a reference (0: its layout is not chosen), responses per pass, and tokens of a
  /// micro-batch.
  std::map<std::array<std::int64_t, 3>, std::vector<RankedReference>> references_;
  std::map<Key, Result<Completion>> completions_;
  int last_share_ = 1;  ///< Start of the next search; does not affect results.
};

}  // namespace temper::study
