#include "study/search/steady_state.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/simulated_reference.hpp"
#include "actors/simulation/tensor_fetch.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/pipeline/switch_plan.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "study/search/steady_terms.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <unordered_map>

namespace temper::study {
namespace {

using actors::SimulatedRun;
using actors::SimulationSettings;
using steady::BatchStatistics;
using steady::Engine;
using steady::Lifetimes;
using steady::SteadyTerms;

// Keys of cached costs: configurations with equal keys have equal costs. Lengths, model and cluster
// are those of the model's settings.

struct EngineKey {
  actors::RolloutEngineConfig layout;
  std::int64_t cards = 0;
  bool turns = false;

  bool operator==(const EngineKey&) const = default;
};

/// A pass over the first batch, by the trainer or by the reference.
struct PassKey {
  actors::TrainerEngineConfig layout;
  std::int64_t cards = 0;    ///< Per actor.
  std::int32_t sharing = 1;  ///< Actors that share the batch.
  std::int32_t groups = 0, group_size = 0;
  // Of the reference alone:
  orchestrator::ScoringPasses passes{};
  actors::ReferenceEngineConfig reference{};

  bool operator==(const PassKey&) const = default;
};

struct SwitchCostKey {
  actors::TrainerEngineConfig trainer;
  actors::RolloutEngineConfig rollout;
  orchestrator::PlacementMode mode = orchestrator::PlacementMode::Separate;
  std::int64_t trainer_cards = 0, rollout_cards = 0, reference_cards = 0;
  std::int32_t engines = 0, references = 0;
  actors::ReferenceEngineConfig reference{};

  bool operator==(const SwitchCostKey&) const = default;
};

/// Hashes the most variable members; the others are compared.
struct KeyHash {
  static std::size_t mix(std::initializer_list<std::int64_t> parts) {
    std::size_t out = 0;
    for (const std::int64_t part : parts)
      out = (out ^ std::hash<std::int64_t>()(part)) * 0x9E3779B97F4A7C15U;
    return out ^ (out >> 32);
  }
  static std::size_t of(const actors::TrainerEngineConfig& t, std::int64_t cards) {
    return mix({t.tp, t.pp, t.vpp, t.ep, t.cp, t.micro_batch_tokens, cards});
  }
  static std::size_t of(const actors::RolloutEngineConfig& r, std::int64_t cards) {
    return mix({r.tp, r.ep, std::lround(r.kv_share * 1e4), cards});
  }
  std::size_t operator()(const EngineKey& k) const { return of(k.layout, k.cards); }
  std::size_t operator()(const PassKey& k) const { return of(k.layout, k.cards); }
  std::size_t operator()(const SwitchCostKey& k) const {
    return of(k.trainer, k.trainer_cards) ^ of(k.rollout, k.rollout_cards + k.engines);
  }
};

}  // namespace

class SteadyStateModel::Costs {
 public:
  explicit Costs(SimulatedRun run) : run_(std::move(run)) {}

  SteadyState judge(const orchestrator::PipelineConfig& c,
                    const orchestrator::PlacementConfig& cards);

 private:
  /// The run of a configuration.
  SimulatedRun run_of(const orchestrator::PipelineConfig& c) const {
    SimulatedRun s = run_;
    const auto prompt = s.config.prompt.lengths, response = s.config.response.lengths;
    s.config = c.simulation;
    s.config.prompt.lengths = prompt;
    s.config.response.lengths = response;
    return s;
  }
  /// The settings of an actor of this run on this many cards.
  SimulationSettings actor_of(const orchestrator::PipelineConfig& c,
                              actors::RoleKind role,
                              std::int64_t cards) const {
    SimulationSettings s{run_of(c)};
    actors::look_at(s, role);
    s.cards = cards;
    return s;
  }
  BatchStatistics& batch(const orchestrator::PipelineConfig& c);
  SteadyTerms terms(const orchestrator::PipelineConfig& c,
                    const orchestrator::PlacementConfig& cards,
                    double seconds_per_step);
  Engine& engine(const orchestrator::PipelineConfig& c, const orchestrator::PlacementConfig& cards);
  double update(const orchestrator::PipelineConfig& c,
                const orchestrator::PlacementConfig& cards,
                BatchStatistics& batch);
  struct Scoring {
    double batch = 0, group = 0;
  };
  Scoring scoring(const orchestrator::PipelineConfig& c,
                  const orchestrator::PlacementConfig& cards,
                  BatchStatistics& batch);
  /// Seconds in which the trainer reads the tensors of a batch.
  double waits_for_tensors(const orchestrator::PipelineConfig& c,
                           const orchestrator::PlacementConfig& cards,
                           const BatchStatistics& batch) const;
  /// Payload times of a batch with this many responses, if roles are in several clusters.
  struct Payloads {
    double trainer = 0, reference = 0;
  };
  Payloads waits_for_payloads(const orchestrator::PipelineConfig& c,
                              const BatchStatistics& batch,
                              double responses) const;
  struct SwitchCosts {
    double publish = 0, to_rollout = 0, to_training = 0;
  };
  SwitchCosts switch_costs(const orchestrator::PipelineConfig& c,
                           const orchestrator::PlacementConfig& cards);
  std::map<actors::CardState, double> states(const orchestrator::PipelineConfig& c,
                                             const orchestrator::PlacementConfig& cards,
                                             const SteadyTerms& t,
                                             const SteadyState& steady);

  const SimulatedRun run_;
  std::map<std::pair<std::int32_t, std::int32_t>, BatchStatistics> batches_;
  std::unordered_map<EngineKey, std::unique_ptr<Engine>, KeyHash> engines_;
  std::unordered_map<PassKey, double, KeyHash> updates_;
  std::unordered_map<PassKey, Scoring, KeyHash> scorings_;
  std::unordered_map<SwitchCostKey, SwitchCosts, KeyHash> switch_costs_;
};

BatchStatistics& SteadyStateModel::Costs::batch(const orchestrator::PipelineConfig& c) {
  const std::pair key{c.algorithm.groups_per_update, c.algorithm.responses_per_group};
  const auto known = batches_.find(key);
  return known != batches_.end()
             ? known->second
             : batches_.emplace(key, BatchStatistics(c, run_.config)).first->second;
}

Engine& SteadyStateModel::Costs::engine(const orchestrator::PipelineConfig& c,
                                        const orchestrator::PlacementConfig& cards) {
  const std::int64_t size = std::ssize(cards.rollout) / c.rollout.replicas;
  const bool turns = traits_of(cards.mode).alternates();
  std::unique_ptr<Engine>& known = engines_[EngineKey{c.simulation.rollout, size, turns}];
  if (!known) {
    SimulationSettings s = actor_of(c, actors::RoleKind::Rollout, size);
    s.colocated = turns;
    known = std::make_unique<Engine>(s);
  }
  return *known;
}

double SteadyStateModel::Costs::update(const orchestrator::PipelineConfig& c,
                                       const orchestrator::PlacementConfig& cards,
                                       BatchStatistics& batch) {
  const PassKey key{c.simulation.trainer,
                    std::ssize(cards.trainer),
                    1,
                    c.algorithm.groups_per_update,
                    c.algorithm.responses_per_group};
  const auto [known, fresh] = updates_.try_emplace(key, 0);
  if (fresh) {
    SimulatedRun s = run_of(c);
    s.trainer_cards = std::ssize(cards.trainer);
    const trainer::UpdateModel update(s);
    known->second = update.seconds(batch.packed(batch.size(), update.limits()));
  }
  return known->second;
}

SteadyStateModel::Costs::Scoring SteadyStateModel::Costs::scoring(
    const orchestrator::PipelineConfig& c,
    const orchestrator::PlacementConfig& cards,
    BatchStatistics& batch) {
  const std::int32_t actors = orchestrator::reference_count(c);
  if (actors == 0)
    return {};
  const std::int64_t size = std::ssize(cards.reference) / actors;
  const orchestrator::ScoringPasses passes = orchestrator::scoring_passes(c, cards, batch.size());
  const PassKey key{c.simulation.trainer,
                    size,
                    actors,
                    c.algorithm.groups_per_update,
                    c.algorithm.responses_per_group,
                    passes,
                    c.simulation.reference};
  const auto [known, fresh] = scorings_.try_emplace(key);
  if (fresh) {
    const actors::ReferenceModel model(actor_of(c, actors::RoleKind::Reference, size));
    const auto part = [&](std::int64_t responses) {
      return model.seconds(batch.packed(responses, model.limits()));
    };
    known->second = {passes.count * part(passes.responses), part(c.algorithm.responses_per_group)};
  }
  return known->second;
}

SteadyStateModel::Costs::Payloads SteadyStateModel::Costs::waits_for_payloads(
    const orchestrator::PipelineConfig& c, const BatchStatistics& batch, double responses) const {
  if (!run_.clusters)
    return {};
  const auto tokens = [&](double mean) { return Tokens(std::llround(mean * responses)); };
  const actors::PayloadTokens all{
      std::llround(responses), tokens(batch.prompt()), tokens(batch.tokens())};
  const SimulatedRun run = run_of(c);
  return {actors::to_trainer(run, all).seconds,
          c.reference.replicas > 0 ? actors::to_reference(run, all).seconds : 0};
}

double SteadyStateModel::Costs::waits_for_tensors(const orchestrator::PipelineConfig& c,
                                                  const orchestrator::PlacementConfig& cards,
                                                  const BatchStatistics& batch) const {
  if (!c.simulation.tensors.any())
    return 0;
  SimulatedRun run = run_of(c);
  actors::look_at(run, actors::RoleKind::Trainer);
  const auto tokens = [&](double mean) {
    return Tokens(std::llround(mean * static_cast<double>(batch.size())));
  };
  const double bytes =
      actors::tensor_bytes(run, {batch.size(), tokens(batch.prompt()), tokens(batch.tokens())});
  return actors::fetch_tensors(
             sim_hw::make_fabric(run.cluster), run, orchestrator::tensor_places(cards), bytes)
      .seconds;
}

SteadyStateModel::Costs::SwitchCosts SteadyStateModel::Costs::switch_costs(
    const orchestrator::PipelineConfig& c, const orchestrator::PlacementConfig& cards) {
  const SwitchCostKey key{c.simulation.trainer,
                          c.simulation.rollout,
                          cards.mode,
                          std::ssize(cards.trainer),
                          std::ssize(cards.rollout),
                          std::ssize(cards.reference),
                          c.rollout.replicas,
                          c.reference.replicas,
                          c.simulation.reference};
  const auto [known, fresh] = switch_costs_.try_emplace(key);
  if (!fresh)
    return known->second;
  const actors::SimulatedPlacement placement =
      orchestrator::simulated_placement(c, cards, run_of(c));
  if (traits_of(cards.mode).exclusive_rollout) {
    const SimulationSettings engine = actors::own_engine(placement);
    known->second.publish = actors::publish_seconds(sim_hw::make_fabric(engine.cluster), engine);
  }
  if (traits_of(cards.mode).shares) {
    const orchestrator::SwitchPlan plan = orchestrator::predict_switch(placement);
    for (const orchestrator::PredictedState& state : plan.to_rollout)
      known->second.to_rollout += state.seconds;
    for (const orchestrator::PredictedState& state : plan.to_training)
      known->second.to_training += state.seconds;
  }
  return known->second;
}

std::map<actors::CardState, double> SteadyStateModel::Costs::states(
    const orchestrator::PipelineConfig& c,
    const orchestrator::PlacementConfig& cards,
    const SteadyTerms& t,
    const SteadyState& steady) {
  using enum actors::CardState;
  const double all = static_cast<double>(c.placement.cards) * steady.seconds_per_update;
  const auto share = [&](const std::vector<CardId>& of, double seconds) {
    return static_cast<double>(of.size()) * seconds / all;
  };
  std::map<actors::CardState, double> out;
  out[Train] = share(cards.trainer, update(c, cards, batch(c)));
  out[Reference] = c.reference.replicas > 0 ? share(cards.reference, t.scoring) : 0;
  out[Prefill] = share(cards.rollout, t.prefill - t.engine.swap());
  out[Decode] = share(cards.rollout, steady.decode_seconds);
  if (traits_of(cards.mode).lends())
    out[Decode] += share(cards.trainer, steady.lent_seconds);
  double busy = 0;
  for (const auto& [state, part] : out)
    busy += part;
  for (auto& [state, part] : out)  // Roles on the same cards may overlap in these estimates.
    part /= std::max(1.0, busy);
  out[Idle] = std::max(0.0, 1 - busy);
  return out;
}

SteadyTerms SteadyStateModel::Costs::terms(const orchestrator::PipelineConfig& c,
                                           const orchestrator::PlacementConfig& cards,
                                           double seconds_per_step) {
  BatchStatistics& all = batch(c);
  Engine& e = engine(c, cards);
  const Lifetimes& d =
      all.lifetimes(seconds_per_step, e.steps_per_call(all.results(), seconds_per_step));
  SteadyTerms t{.batch = d, .results = all.results(), .engine = e};
  const auto as_double = [](auto number) { return static_cast<double>(number); };
  t.eta = c.staleness.rule == orchestrator::StalenessRuleKind::Sync ? 0 : c.staleness.bound;
  const double engines = as_double(c.rollout.replicas);
  const double batch = as_double(c.algorithm.groups_per_update);
  t.group = as_double(c.algorithm.responses_per_group);
  const double responses = batch * t.group;
  t.fresh = responses / (engines * t.engine.replicas());
  const double most = t.engine.cache() / t.own(t.context()) / d.decoding;
  t.slots = as_double(c.rollout.concurrency) / t.engine.replicas();
  // A group is dispatched as a whole, to an engine with room for all of it.
  const double room = as_double(c.rollout.concurrency);
  const double used = room >= 2 * t.group ? room - (t.group - 1) / 2
                                          : std::min(room, t.group * d.mean / d.group_end);
  t.used = used / t.engine.replicas();
  t.full = std::max(1.0, std::min(t.used, most));
  t.update = update(c, cards, all) + waits_for_payloads(c, all, responses).trainer +
             waits_for_tensors(c, cards, all);
  const Scoring s = scoring(c, cards, all);
  t.scoring = s.batch + waits_for_payloads(c, all, responses).reference;
  t.scored = s.group + seconds(c.simulation.reward.mean);
  const auto prompts = static_cast<std::int64_t>(std::ceil(batch / engines));
  t.prefill = t.engine.prefill_seconds(prompts, d.prompt) + t.engine.swap();
  const SwitchCosts m = switch_costs(c, cards);
  t.publish = m.publish + t.engine.swap();
  t.to_rollout = m.to_rollout;
  t.to_training = m.to_training;
  t.return_share = cards.return_share;
  return t;
}

SteadyState SteadyStateModel::Costs::judge(const orchestrator::PipelineConfig& c,
                                           const orchestrator::PlacementConfig& cards) {
  constexpr int kMostRounds = 12;
  constexpr double kSame = 0.02;
  const BatchStatistics& all = batch(c);
  // With calls, the stays depend on the seconds of a step, and these on how many decode.
  double step = engine(c, cards).step(1, all.prompt() + all.tokens());
  for (int round = 1;; ++round) {
    SteadyTerms t = terms(c, cards, step);
    // The first response to end waits for the whole interval, those that end within it for half of
    // it.
    const double interval = seconds(c.simulation.report_every);
    const double others = interval * t.full * t.engine.replicas() / t.held();
    t.report = interval * (1 + others / 2) / (1 + others);
    SteadyState out = steady::solve_steady_state(t, cards);
    const double off = std::abs(out.seconds_per_step / step - 1);
    if (!all.has_calls() || off < kSame || round == kMostRounds) {
      const double tokens = static_cast<double>(all.size()) * (all.prompt() + all.tokens());
      out.trained_per_s = tokens / out.seconds_per_update;
      out.states = states(c, cards, t, out);
      return out;
    }
    step = std::sqrt(step * out.seconds_per_step);
  }
}

SteadyStateModel::SteadyStateModel(SimulatedRun run)
    : costs_(std::make_unique<Costs>(std::move(run))) {}
SteadyStateModel::~SteadyStateModel() = default;
SteadyStateModel::SteadyStateModel(SteadyStateModel&&) noexcept = default;
SteadyStateModel& SteadyStateModel::operator=(SteadyStateModel&&) noexcept = default;

SteadyState SteadyStateModel::operator()(const orchestrator::PipelineConfig& config,
                                         const orchestrator::PlacementConfig& cards) {
  return costs_->judge(config, cards);
}

}  // namespace temper::study
