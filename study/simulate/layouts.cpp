#include "study/simulate/layouts.hpp"

#include "actors/simulation/lengths.hpp"
#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "study/simulate/engine_space.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::study {
namespace {

using actors::SimulatedRun;

/// Steps of kv_share, from the largest.
constexpr int kMostTwentieths = 19;

}  // namespace

Result<LayoutChooser> LayoutChooser::create(const orchestrator::ResolvedPipeline& like) {
  SimulatedRun run = *like.simulation;
  TEMPER_TRY_STATUS(actors::check_lengths(run.config.prompt));
  TEMPER_TRY_STATUS(actors::check_lengths(run.config.response));
  run.cluster.fits.clear();  // Sources of constants are not needed here and are expensive to copy.
  if (run.clusters) {
    for (actors::RoleCluster* role :
         {&run.clusters->trainer, &run.clusters->rollout, &run.clusters->reference})
      role->hardware.fits.clear();
  }
  const FirstBatch batch = draw_first_batch(like.config, run.config);
  return LayoutChooser(std::move(run), batch);
}

const std::vector<actors::TrainerEngineConfig>& LayoutChooser::trainers(std::int64_t cards) {
  const auto known = trainers_.find(cards);
  if (known != trainers_.end())
    return known->second;
  SimulatedRun s = run_;
  s.trainer_cards = cards;
  const double most = std::min(most_, actors::device_capacity(s));
  const std::vector<RankedTrainer> ranked = rank_trainers(std::move(s), most, packings_);
  std::vector<actors::TrainerEngineConfig> tried;
  for (const std::size_t i : pareto_optimal(ranked))
    tried.push_back(ranked[i].layout);
  return trainers_.emplace(cards, std::move(tried)).first->second;
}

const std::vector<RankedReference>& LayoutChooser::references(
    const orchestrator::PipelineConfig& config,
    const orchestrator::PlacementConfig& cards,
    const actors::SimulatedPlacement& placement) {
  const bool chosen =
      placement.reference != actors::ReferencePlace::None && run_.reference_model.has_value();
  const actors::SimulatedRun& run = placement.run;
  const actors::SimulationSettings own = actors::one_reference(placement);
  const orchestrator::ScoringPasses passes =
      orchestrator::scoring_passes(config, cards, std::ssize(sequences_));
  const std::array<std::int64_t, 3> key{
      chosen ? own.cards : 0, passes.responses, run.config.trainer.micro_batch_tokens};
  const auto known = references_.find(key);
  if (known != references_.end())
    return known->second;
  const double most = std::min(most_, actors::device_capacity(own));
  return references_
      .emplace(key,
               chosen ? rank_references(own, most, sequences_, passes)
                      : std::vector<RankedReference>{{.layout = run.config.reference}})
      .first->second;
}

LayoutChooser::Fit LayoutChooser::fit(const actors::SimulatedPlacement& placement,
                                      double kept) const {
  const auto phases = actors::memory_phases(placement);
  if (!phases)
    return Fit::NoCache;
  return std::ranges::all_of(*phases,
                             [&](const actors::PhaseLedger& phase) {
                               return phase.device() <= std::min(most_, phase.device_capacity) &&
                                      phase.host() + kept <= phase.host_capacity;
                             })
             ? Fit::Fits
             : Fit::TooLarge;
}

std::optional<int> LayoutChooser::largest_kv_share(actors::SimulatedPlacement placement,
                                                   double kept) {
  const auto at = [&](int twentieths) {
    placement.run.config.rollout.kv_share = static_cast<double>(twentieths) / 20;
    return fit(placement, kept);
  };
  int low = 0, high = kMostTwentieths + 1;
  // Neighbors in a search usually end at the same share.
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

std::int64_t LayoutChooser::engine_devices(const orchestrator::PipelineConfig& config,
                                           const orchestrator::PlacementConfig& cards) const {
  return std::ssize(cards.rollout) / config.rollout.replicas *
         actors::hardware_of(run_, actors::RoleKind::Rollout).dies_per_card;
}

std::vector<std::int64_t> LayoutChooser::eps_of(const orchestrator::PipelineConfig& config,
                                                const orchestrator::PlacementConfig& cards) const {
  return engine_eps(
      run_.model, config.simulation.rollout.redundant_experts, engine_devices(config, cards));
}

LayoutChooser::Completion LayoutChooser::fastest_engine(const orchestrator::PipelineConfig& config,
                                                        const orchestrator::PlacementConfig& cards,
                                                        actors::SimulatedPlacement placement,
                                                        double kept,
                                                        const Completion& widest) {
  actors::SimulatedRun& run = placement.run;
  const auto rate = [&](const Completion& c) {
    run.config.rollout.ep = c.ep;
    run.config.rollout.kv_share = c.kv_share;
    return engine_rate(engine_settings(run, config, cards), lengths_).tokens_per_second();
  };
  Completion best = widest;
  double most = rate(best);
  for (const std::int64_t ep : eps_of(config, cards)) {
    run.config.rollout.ep = ep;
    const auto twentieths = ep == widest.ep ? std::nullopt : largest_kv_share(placement, kept);
    if (!twentieths)
      continue;
    const Completion other{
        widest.trainer, widest.reference, ep, static_cast<double>(*twentieths) / 20};
    const double tokens_per_second = rate(other);
    if (tokens_per_second > most) {
      best = other;
      most = tokens_per_second;
    }
  }
  return best;
}

Result<LayoutChooser::Completion> LayoutChooser::choose(
    orchestrator::PipelineConfig config, const orchestrator::PlacementConfig& cards) {
  const auto trainer_cards = std::ssize(cards.trainer);
  const std::vector<actors::TrainerEngineConfig>& layouts = trainers(trainer_cards);
  if (layouts.empty()) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("no trainer layout fits {} cards", trainer_cards)};
  }
  SimulatedRun s = run_;
  s.config.rollout = config.simulation.rollout;
  const std::vector<std::int64_t> eps = eps_of(config, cards);
  if (eps.empty()) {
    return invalid_input(fmt::format(
        "simulation.rollout.redundant_experts = {}: no ep divides the experts and their "
        "copies, and the {} devices of an engine",
        s.config.rollout.redundant_experts,
        engine_devices(config, cards)));
  }
  s.config.rollout.ep = eps.back();
  actors::SimulatedPlacement placement = orchestrator::simulated_placement(config, cards, s);
  // Memory that a trainer on time-shared cards keeps between two of its turns (card_shares.hpp).
  const bool keeps =
      config.stragglers.prepare && config.placement.switching == orchestrator::Switching::OneByOne;
  for (const actors::TrainerEngineConfig& layout : layouts) {
    placement.run.config.trainer = layout;
    const double kept = keeps ? actors::trainer_memory(placement.run).device.gradients : 0;
    const std::vector<RankedReference>& ranked = references(config, cards, placement);
    if (ranked.empty()) {
      return Error{ErrorCode::OutOfMemory,
                   fmt::format("no layout of the reference {} fits its {} cards",
                               run_.reference_model->name,
                               std::ssize(cards.reference))};
    }
    for (const RankedReference& reference : ranked) {
      placement.run.config.reference = reference.layout;
      if (const auto twentieths = largest_kv_share(placement, kept)) {
        const Completion widest{
            layout, reference.layout, s.config.rollout.ep, static_cast<double>(*twentieths) / 20};
        return fastest_engine(config, cards, std::move(placement), kept, widest);
      }
      if (placement.reference == actors::ReferencePlace::Own)
        break;  // Its memory leaves that of the others as it is.
    }
  }
  return Error{ErrorCode::OutOfMemory,
               fmt::format("no trainer layout fits {2} cards beside {0} engines of {1} cards",
                           config.rollout.replicas,
                           std::ssize(cards.rollout) / config.rollout.replicas,
                           trainer_cards)};
}

Result<orchestrator::PipelineConfig> LayoutChooser::complete(
    orchestrator::PipelineConfig config, const orchestrator::PlacementConfig& cards) {
  const std::int64_t devices = engine_devices(config, cards);
  const std::int64_t tp = config.simulation.rollout.tp;
  const std::int64_t rows = (config.rollout.concurrency * tp + devices - 1) / devices;
  const Key key{static_cast<std::int64_t>(cards.mode),
                std::ssize(cards.rollout),
                std::ssize(cards.trainer),
                std::ssize(cards.reference),
                config.rollout.replicas,
                orchestrator::reference_count(config),
                tp,
                rows,
                static_cast<std::int64_t>(config.placement.switching),
                std::int64_t{config.stragglers.prepare}};
  auto known = completions_.find(key);
  if (known == completions_.end())
    known = completions_.emplace(key, choose(config, cards)).first;
  if (!known->second)
    return known->second.error();
  config.simulation.trainer = known->second->trainer;
  config.simulation.reference = known->second->reference;
  config.simulation.rollout.ep = known->second->ep;
  config.simulation.rollout.kv_share = known->second->kv_share;
  return config;
}

}  // namespace temper::study
