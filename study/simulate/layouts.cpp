#include "study/simulate/layouts.hpp"

#include "actors/simulation/lengths.hpp"
#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "study/simulate/first_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace temper::study {
namespace {

using actors::SimulatedRun;

/// Of kv_share, from the largest tried.
constexpr int kMostTwentieths = 19;
/// Layouts of the trainer, fastest first, that are tried beside the other roles.
constexpr std::size_t kTried = 64;

}  // namespace

Result<LayoutChooser> LayoutChooser::create(const orchestrator::ResolvedPipeline& like) {
  SimulatedRun run = *like.simulation;
  TEMPER_TRY_STATUS(actors::check_lengths(run.config.prompt));
  TEMPER_TRY_STATUS(actors::check_lengths(run.config.response));
  run.cluster.fits.clear();  // where constants come from is not asked here, and costs copies
  std::vector<Tokens> batch = draw_first_batch(like.config, run.config).sequences();
  return LayoutChooser(std::move(run), std::move(batch));
}

const std::vector<actors::TrainerEngineConfig>& LayoutChooser::trainers(std::int64_t cards) {
  const auto known = trainers_.find(cards);
  if (known != trainers_.end())
    return known->second;
  SimulatedRun s = run_;
  s.trainer_cards = cards;
  const auto ranked = rank_trainers(
      std::move(s), TrainerDegrees::Coarse, OptimizerPlace::AsConfigured, most_, packings_);
  std::vector<actors::TrainerEngineConfig> tried;
  for (std::size_t i = 0; i < std::min(kTried, ranked.size()); ++i)
    tried.push_back(ranked[i].layout);
  return trainers_.emplace(cards, std::move(tried)).first->second;
}

LayoutChooser::Fit LayoutChooser::fit(const actors::SimulatedPlacement& placement) const {
  const auto phases = actors::memory_phases(placement);
  if (!phases)
    return Fit::NoCache;
  return std::ranges::all_of(*phases,
                             [&](const actors::PhaseLedger& phase) {
                               return phase.device() <= most_ &&
                                      phase.host() <= actors::host_capacity(run_);
                             })
             ? Fit::Fits
             : Fit::TooLarge;
}

std::optional<int> LayoutChooser::largest_kv_share(actors::SimulatedPlacement placement) {
  const auto at = [&](int twentieths) {
    placement.run.config.rollout.kv_share = static_cast<double>(twentieths) / 20;
    return fit(placement);
  };
  int low = 0, high = kMostTwentieths + 1;
  // Neighbours in a search mostly end at the same share.
  if (at(last_share_) != Fit::TooLarge)
    low = last_share_;
  else
    high = last_share_;
  if (low + 1 < high && at(low + 1) == Fit::TooLarge)
    high = low + 1;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (at(middle) == Fit::TooLarge ? high : low) = middle;
  }
  if (low == 0 || at(low) != Fit::Fits)
    return std::nullopt;
  last_share_ = low;
  return low;
}

Result<LayoutChooser::Completion> LayoutChooser::choose(
    orchestrator::PipelineConfig config, const orchestrator::PlacementConfig& cards) {
  const auto trainer_cards = std::ssize(cards.trainer);
  const std::vector<actors::TrainerEngineConfig>& layouts = trainers(trainer_cards);
  if (layouts.empty()) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("no layout of the trainer fits {} cards", trainer_cards)};
  }
  SimulatedRun s = run_;
  s.config.rollout = config.simulation.rollout;
  actors::SimulatedPlacement placement = orchestrator::simulated_placement(config, cards, s);
  for (const actors::TrainerEngineConfig& layout : layouts) {
    placement.run.config.trainer = layout;
    if (const auto twentieths = largest_kv_share(placement))
      return Completion{layout, static_cast<double>(*twentieths) / 20};
  }
  return Error{
      ErrorCode::OutOfMemory,
      fmt::format("beside {} engines of {} cards no layout of the trainer on {} cards fits",
                  config.rollout.replicas,
                  std::ssize(cards.rollout) / config.rollout.replicas,
                  trainer_cards)};
}

Result<orchestrator::PipelineConfig> LayoutChooser::complete(
    orchestrator::PipelineConfig config, const orchestrator::PlacementConfig& cards) {
  const std::int64_t engine_devices =
      std::ssize(cards.rollout) / config.rollout.replicas * run_.cluster.dies_per_card;
  const std::int64_t tp = config.simulation.rollout.tp;
  config.simulation.rollout.ep =
      run_.model.moe ? std::gcd(engine_devices, run_.model.moe->experts) : 1;
  const std::int64_t rows = (config.rollout.concurrency * tp + engine_devices - 1) / engine_devices;
  const Key key{static_cast<std::int64_t>(cards.mode),
                std::ssize(cards.rollout),
                std::ssize(cards.trainer),
                std::ssize(cards.reference),
                config.rollout.replicas,
                config.reference.replicas,
                tp,
                rows};
  auto known = completions_.find(key);
  if (known == completions_.end())
    known = completions_.emplace(key, choose(config, cards)).first;
  if (!known->second)
    return known->second.error();
  config.simulation.trainer = known->second->trainer;
  config.simulation.rollout.kv_share = known->second->kv_share;
  return config;
}

}  // namespace temper::study
