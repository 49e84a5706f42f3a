#include "study/simulate/layouts.hpp"

#include "actors/simulation/lengths.hpp"
#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace temper::study {
namespace {

using actors::SimulatedRun;
using actors::TrainerEngineConfig;

constexpr std::int64_t kMostTp = 16, kMostCp = 4, kMostPp = 32;
constexpr std::int64_t kMicroBatches[] = {8192, 16384, 32768};
/// Of kv_share, from the largest tried.
constexpr int kMostTwentieths = 19;
/// Layouts of the trainer, fastest first, that are tried beside the other roles.
constexpr std::size_t kTried = 64;

/// What one update trains: the first batch of the run.
std::vector<Tokens> draw_batch(const orchestrator::PipelineConfig& c, const SimulatedRun& s) {
  const actors::Lengths prompts(s.config.prompt, c.seed, actors::kPromptLengths);
  const actors::Lengths responses(s.config.response, c.seed, actors::kResponseLengths);
  const auto group = static_cast<std::uint64_t>(c.algorithm.responses_per_group);
  const auto count = static_cast<std::uint64_t>(c.algorithm.groups_per_update) * group;
  std::vector<Tokens> batch;
  for (std::uint64_t i = 0; i < count; ++i)
    batch.push_back(prompts.of(i / group) + responses.of(i, i / group));
  return batch;
}

}  // namespace

Result<LayoutChooser> LayoutChooser::create(const orchestrator::ResolvedPipeline& like) {
  SimulatedRun run = *like.simulation;
  TEMPER_TRY_STATUS(actors::check_lengths(run.config.prompt));
  TEMPER_TRY_STATUS(actors::check_lengths(run.config.response));
  run.cluster.fits.clear();  // where constants come from is not asked here, and costs copies
  std::vector<Tokens> batch = draw_batch(like.config, run);
  return LayoutChooser(std::move(run), std::move(batch));
}

std::vector<TrainerEngineConfig> LayoutChooser::layouts(std::int64_t devices) const {
  std::vector<TrainerEngineConfig> out;
  const std::int64_t experts = run_.model.moe ? run_.model.moe->experts : 1;
  TrainerEngineConfig c = run_.config.trainer;
  c.vpp = c.mechanisms.schedule == sim_hw::PipelineSchedule::AdaptivePipe ? 2 : 1;
  for (c.tp = 1; c.tp <= std::min(kMostTp, devices); c.tp *= 2) {
    for (c.cp = 1; c.cp <= kMostCp; c.cp *= 2) {
      for (c.pp = 1; c.pp <= std::min(kMostPp, run_.model.layers); ++c.pp) {
        if (devices % (c.tp * c.cp * c.pp) != 0)
          continue;
        for (c.ep = 1; c.ep <= std::min(experts, devices / c.pp); c.ep *= 2) {
          for (const std::int64_t tokens : kMicroBatches) {
            c.micro_batch_tokens = tokens;
            out.push_back(c);
          }
        }
      }
    }
  }
  return out;
}

std::vector<LayoutChooser::Ranked> LayoutChooser::rank(std::int64_t cards) {
  std::vector<Ranked> out;
  SimulatedRun s = run_;
  s.trainer_cards = cards;
  for (const TrainerEngineConfig& layout : layouts(cards * s.cluster.dies_per_card)) {
    s.config.trainer = layout;
    if (!actors::check_trainer(s))
      continue;
    const actors::ActorMemory memory = actors::trainer_memory(s);
    if (memory.device.total() > most_ || memory.host.total() > actors::host_capacity(s))
      continue;
    const trainer::UpdateModel update(s);
    out.push_back({layout, update.seconds(packings_(update.limits()))});
  }
  std::ranges::stable_sort(out, {}, &Ranked::seconds);
  return out;
}

const std::vector<LayoutChooser::Ranked>& LayoutChooser::trainers(std::int64_t cards) {
  const auto known = trainers_.find(cards);
  return known != trainers_.end() ? known->second
                                  : trainers_.emplace(cards, rank(cards)).first->second;
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
  const std::vector<Ranked>& ranked = trainers(trainer_cards);
  if (ranked.empty()) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("no layout of the trainer fits {} cards", trainer_cards)};
  }
  SimulatedRun s = run_;
  s.config.rollout = config.simulation.rollout;
  actors::SimulatedPlacement placement = orchestrator::simulated_placement(config, cards, s);
  for (std::size_t i = 0; i < std::min(kTried, ranked.size()); ++i) {
    placement.run.config.trainer = ranked[i].layout;
    if (const auto twentieths = largest_kv_share(placement))
      return Completion{ranked[i].layout, static_cast<double>(*twentieths) / 20};
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
