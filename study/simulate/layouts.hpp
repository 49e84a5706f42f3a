// Completes a configuration on simulated hardware with what its memory allows and the cost model
// already knows, so that a search need not try it run by run:
//   trainer   tp, pp, cp, ep and micro_batch_tokens whose update of one drawn batch is fastest
//             (trainer/simulated/update_cost.hpp: the same equation that a run uses), among those
//             that the model, the trainer's cards and every phase of every card's memory allow
//   rollout   ep: all devices of an engine, or as many of them as the experts divide by; kv_share:
//             the largest that fits, in steps of 0.05
// Tried: tp 1 to 16 and cp 1 to 4 in powers of two, pp any divisor up to 32, ep any power of two,
// micro-batches of 8K, 16K and 32K tokens; vpp stays 1. The optimizer stays where the configuration
// has it.
//
// Answers are remembered, so one chooser serves configurations that differ in cards, replicas,
// concurrency and rollout layout alone. One thread.
#pragma once

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/packing.hpp"
#include "actors/simulation/role_memory.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <array>
#include <map>
#include <optional>
#include <vector>

namespace temper::study {

class LayoutChooser {
 public:
  /// Requires: the configurations to complete have the cluster, model, lengths, batch and
  /// optimizer_on_host of this one, which is simulated. Errors: lengths that cannot be drawn.
  static Result<LayoutChooser> create(const orchestrator::ResolvedPipeline& like);

  /// From now on a device may use no more than this. Requires: before the first complete().
  void limit_memory(Bytes most) { most_ = std::min(most_, static_cast<double>(most.count())); }

  /// `cards`: resolve_placement() of the configuration. Error OutOfMemory: no layout of the
  /// trainer, or none beside the rest, fits.
  Result<orchestrator::PipelineConfig> complete(orchestrator::PipelineConfig config,
                                                const orchestrator::PlacementConfig& cards);

 private:
  struct Ranked {
    actors::TrainerEngineConfig layout;
    double seconds = 0;  ///< Of an update.
  };
  /// All of a configuration that memory depends on and complete() does not choose.
  using Key = std::array<std::int64_t, 8>;
  struct Completion {
    actors::TrainerEngineConfig trainer;
    double kv_share = 0;
  };

  LayoutChooser(actors::SimulatedRun run, std::vector<Tokens> batch)
      : run_(std::move(run)), packings_(std::move(batch)), most_(actors::device_capacity(run_)) {}
  /// The trainer's layouts on so many cards, fastest first.
  const std::vector<Ranked>& trainers(std::int64_t cards);
  std::vector<Ranked> rank(std::int64_t cards);
  std::vector<actors::TrainerEngineConfig> layouts(std::int64_t devices) const;
  /// The trainer's layout and the KV share of a configuration whose engine layout is set. An error
  /// if no layout fits.
  Result<Completion> choose(orchestrator::PipelineConfig config,
                            const orchestrator::PlacementConfig& cards);
  /// The largest KV share that fits, in twentieths of the memory; none: no share fits.
  std::optional<int> largest_kv_share(actors::SimulatedPlacement placement);
  /// NoCache: the layout cannot be, or its cache cannot hold one longest response.
  enum class Fit { Fits, TooLarge, NoCache };
  Fit fit(const actors::SimulatedPlacement& placement) const;

  actors::SimulatedRun run_;
  actors::Packings packings_;  ///< Of one update's batch, prompts and responses together.
  double most_;                ///< Bytes that a device may use.
  std::map<std::int64_t, std::vector<Ranked>> trainers_;
  std::map<Key, Result<Completion>> completions_;
  int last_share_ = 1;  ///< Where the next search for one begins; no part of any answer.
};

}  // namespace temper::study
