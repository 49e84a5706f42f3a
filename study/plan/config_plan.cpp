#include "study/plan/config_plan.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/packing.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "study/simulate/engine_space.hpp"
#include "study/simulate/first_batch.hpp"
#include "study/simulate/trainer_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace temper::study {
namespace {

using actors::RolloutEngineConfig;
using actors::SimulatedRun;
using actors::SimulationSettings;
using actors::TrainerEngineConfig;

constexpr std::size_t kShown = 3;
constexpr int kShares = 100;

struct Batch {
  explicit Batch(const FirstBatch& first) : sequences(first.sequences()), lengths(first.lengths()) {
    for (const Tokens sequence : sequences)
      tokens += static_cast<double>(sequence.count());
  }
  std::vector<Tokens> sequences;
  double tokens = 0;
  sim_hw::RolloutLengths lengths;
};

bool fits(const SimulatedRun& s, const actors::ActorMemory& memory) {
  return memory.device.total() <= actors::device_capacity(s) &&
         memory.host.total() <= actors::host_capacity(s);
}

class Planner {
 public:
  Planner(const orchestrator::ResolvedPipeline& pipeline, FixedSide keep)
      : config_(pipeline.config),
        cards_(pipeline.placement),
        keep_(keep),
        run_(*pipeline.simulation),
        batch_(draw_first_batch(config_, run_.config)),
        packings_(batch_.sequences) {}

  Result<ConfigPlan> run();

 private:
  std::vector<RankedTrainer> trainers();
  std::vector<RankedReference> references(const TrainerEngineConfig& trainer);
  void add_rollouts(ConfigPlan& plan, const TrainerEngineConfig& trainer);
  std::vector<RolloutEngineConfig> rollout_layouts() const;
  TrainerChoice time_trainer(const TrainerEngineConfig& layout) const;
  EngineChoice time_engine(const RolloutEngineConfig& layout) const;
  std::optional<RolloutEngineConfig> with_largest_cache(RolloutEngineConfig layout,
                                                        const TrainerEngineConfig& trainer) const;
  Status check_together(const RolloutEngineConfig& rollout,
                        const TrainerEngineConfig& trainer) const;

  const orchestrator::PipelineConfig& config_;
  const orchestrator::PlacementConfig& cards_;
  const FixedSide keep_;
  SimulatedRun run_;  ///< Its `config.reference` is the layout being tried.
  const Batch batch_;
  actors::Packings packings_;
};

/// Layouts that fit, fastest first.
std::vector<RankedTrainer> Planner::trainers() {
  if (keep_ != FixedSide::Trainer)
    return rank_trainers(run_, actors::device_capacity(run_), packings_);
  if (!actors::check_trainer(run_) || !fits(run_, actors::trainer_memory(run_)))
    return {};
  return {{.layout = run_.config.trainer}};
}

TrainerChoice Planner::time_trainer(const TrainerEngineConfig& layout) const {
  SimulatedRun s = run_;
  s.config.trainer = layout;
  TrainerChoice out{s.config.trainer,
                    actors::trainer_layout(s).dp,
                    trainer::UpdateModel(s)(batch_.sequences),
                    actors::trainer_memory(s)};
  out.tokens_per_second = batch_.tokens / out.cost.total();
  return out;
}

std::vector<RolloutEngineConfig> Planner::rollout_layouts() const {
  if (keep_ == FixedSide::Rollout)
    return {run_.config.rollout};
  const std::int64_t devices = std::ssize(cards_.rollout) / config_.rollout.replicas *
                               actors::hardware_of(run_, actors::RoleKind::Rollout).dies_per_card;
  std::vector<RolloutEngineConfig> out;
  RolloutEngineConfig c = run_.config.rollout;
  for (const std::int64_t tp : engine_tps(run_.model, devices)) {
    for (const std::int64_t ep : engine_eps(run_.model, c.redundant_experts, devices)) {
      c.tp = tp;
      c.ep = ep;
      out.push_back(c);
    }
  }
  return out;
}

EngineChoice Planner::time_engine(const RolloutEngineConfig& layout) const {
  SimulatedRun run = run_;
  run.config.rollout = layout;
  const SimulationSettings s = engine_settings(run, config_, cards_);
  const EngineRate rate = engine_rate(s, batch_.lengths);
  EngineChoice out{layout, rate, 0, {}};
  out.tokens_per_second = rate.tokens_per_second() * static_cast<double>(config_.rollout.replicas);
  out.memory = actors::rollout_memory(s);
  return out;
}

Status Planner::check_together(const RolloutEngineConfig& rollout,
                               const TrainerEngineConfig& trainer) const {
  SimulatedRun s = run_;
  s.config.rollout = rollout;
  s.config.trainer = trainer;
  return orchestrator::check_memory(orchestrator::simulated_placement(config_, cards_, s));
}

/// The memory only grows with the share, but the cache must hold one longest response.
std::optional<RolloutEngineConfig> Planner::with_largest_cache(
    RolloutEngineConfig layout, const TrainerEngineConfig& trainer) const {
  SimulatedRun s = run_;
  s.config.trainer = trainer;
  for (int share = kShares - 1; share > 0; --share) {
    layout.kv_share = static_cast<double>(share) / kShares;
    s.config.rollout = layout;
    const auto phases =
        actors::memory_phases(orchestrator::simulated_placement(config_, cards_, s));
    if (!phases)
      return std::nullopt;  // Does not divide, or the cache is too small: a smaller share does not
                            // help.
    if (std::ranges::all_of(
            *phases, [](const actors::PhaseLedger& phase) { return orchestrator::fits(phase); }))
      return layout;
  }
  return std::nullopt;
}

/// Layouts of the reference that fit by themselves, fastest first: its own alone, unless its model
/// is not the policy's.
std::vector<RankedReference> Planner::references(const TrainerEngineConfig& trainer) {
  if (config_.reference.replicas == 0 || !run_.reference_model)
    return {{.layout = run_.config.reference}};
  SimulatedRun s = run_;
  s.config.trainer = trainer;
  const SimulationSettings own =
      actors::one_reference(orchestrator::simulated_placement(config_, cards_, s));
  return rank_references(
      own,
      actors::device_capacity(own),
      batch_.sequences,
      orchestrator::scoring_passes(config_, cards_, std::ssize(batch_.sequences)));
}

/// Adds the engines that fit with this trainer and the fastest reference that leaves room for one.
void Planner::add_rollouts(ConfigPlan& plan, const TrainerEngineConfig& trainer) {
  for (const RankedReference& reference : references(trainer)) {
    const actors::ReferenceEngineConfig configured =
        std::exchange(run_.config.reference, reference.layout);
    for (const RolloutEngineConfig& layout : rollout_layouts()) {
      if (const auto filled = with_largest_cache(layout, trainer))
        plan.rollouts.push_back(time_engine(*filled));
    }
    if (!plan.rollouts.empty()) {
      if (run_.reference_model && config_.reference.replicas > 0)
        plan.reference = reference;
      return;
    }
    run_.config.reference = configured;
  }
}

Result<ConfigPlan> Planner::run() {
  ConfigPlan plan;
  plan.config = config_;
  plan.trainer_hardware = actors::hardware_of(run_, actors::RoleKind::Trainer);
  plan.engine_hardware = actors::hardware_of(run_, actors::RoleKind::Rollout);
  plan.trainer_cards = run_.trainer_cards;
  plan.engines = config_.rollout.replicas;
  plan.engine_cards = std::ssize(cards_.rollout) / config_.rollout.replicas;
  plan.reference_cards =
      std::ssize(cards_.reference) / std::max(1, orchestrator::reference_count(config_));
  plan.device_memory = actors::device_capacity(run_);
  plan.host_memory = actors::host_capacity(run_);
  plan.lengths = batch_.lengths;
  const std::vector<RankedTrainer> ranked = trainers();
  plan.scenarios = std::ssize(ranked);
  if (ranked.empty()) {
    return Error{
        ErrorCode::OutOfMemory,
        fmt::format(
            "no trainer layout fits its {} cards of {}", run_.trainer_cards, run_.cluster.name)};
  }
  for (const std::size_t i : pareto_optimal(ranked)) {
    add_rollouts(plan, ranked[i].layout);
    if (plan.rollouts.empty())
      continue;
    for (std::size_t n = i; n < std::min(i + kShown, ranked.size()); ++n)
      plan.trainers.push_back(time_trainer(ranked[n].layout));
    break;
  }
  if (plan.rollouts.empty()) {
    const Status together = check_together(config_.simulation.rollout, ranked.front().layout);
    return Error{ErrorCode::OutOfMemory,
                 "no rollout layout fits with the trainer" +
                     (together ? std::string() : ": " + together.error().context)};
  }
  std::ranges::stable_sort(plan.rollouts, std::ranges::greater(), &EngineChoice::tokens_per_second);
  plan.rollouts.resize(std::min(kShown, plan.rollouts.size()));
  if (actors::check_trainer(run_))
    plan.configured_trainer = time_trainer(run_.config.trainer);
  const SimulationSettings engine = engine_settings(run_, config_, cards_);
  if (actors::check_rollout(engine) && actors::kv_tokens(engine).count() > 0)
    plan.configured_rollout = time_engine(run_.config.rollout);
  plan.config.simulation.trainer = plan.trainers.front().layout;
  plan.config.simulation.rollout = plan.rollouts.front().layout;
  plan.config.simulation.reference = run_.config.reference;
  return plan;
}

}  // namespace

std::vector<std::pair<std::string_view, double>> TrainerChoice::entries() const {
  const auto of_step = cost.time.entries();
  std::vector<std::pair<std::string_view, double>> out(of_step.begin(), of_step.end());
  out.emplace_back("attention of packed sequences", cost.attention_correction);
  out.emplace_back("optimizer states to and from the host", cost.host_transfer);
  if (cost.critic > 0)
    out.emplace_back("critic", cost.critic);
  return out;
}

Result<ConfigPlan> plan_config(const orchestrator::PipelineConfig& config, FixedSide keep) {
  TEMPER_TRY(const orchestrator::ResolvedPipeline pipeline, orchestrator::resolve(config));
  if (!pipeline.simulation)
    return invalid_input("a plan needs `hardware: simulated`");
  return Planner(pipeline, keep).run();
}

}  // namespace temper::study
