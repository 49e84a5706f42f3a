#include "study/plan/config_plan.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/packing.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "rollout/simulated/engine_cost.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "study/simulate/first_batch.hpp"
#include "study/simulate/trainer_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace temper::study {
namespace {

using actors::RolloutEngineConfig;
using actors::SimulatedRun;
using actors::SimulationSettings;
using actors::TrainerEngineConfig;

constexpr std::size_t kShown = 3;
/// Layouts of the trainer, fastest first, that are tried beside an engine.
constexpr std::size_t kTried = 64;
constexpr int kShares = 100;

struct Batch {
  std::vector<Tokens> sequences;
  double tokens = 0;
  sim_hw::RolloutLengths lengths;
};

/// What the first update trains, and what its rollout generates.
Batch batch_of(const orchestrator::PipelineConfig& c, const SimulatedRun& s) {
  const FirstBatch first = draw_first_batch(c, s.config);
  Batch batch{first.sequences(), 0, {}};
  std::vector<double> drawn;
  double prompt = 0;
  for (std::size_t i = 0; i < first.responses.size(); ++i) {
    batch.tokens += static_cast<double>(batch.sequences[i].count());
    drawn.push_back(static_cast<double>(first.responses[i].count()));
    prompt += static_cast<double>(first.prompt_of(i).count());
  }
  batch.lengths = sim_hw::rollout_lengths(prompt / static_cast<double>(drawn.size()), drawn);
  return batch;
}

bool fits(const SimulatedRun& s, const actors::ActorMemory& memory) {
  return memory.device.total() <= actors::device_capacity(s) &&
         memory.host.total() <= actors::host_capacity(s);
}

class Planner {
 public:
  Planner(const orchestrator::ResolvedPipeline& pipeline, Keep keep)
      : config_(pipeline.config),
        cards_(pipeline.placement),
        keep_(keep),
        run_(*pipeline.simulation),
        batch_(batch_of(config_, run_)),
        packings_(batch_.sequences) {}

  Result<ConfigPlan> run();

 private:
  std::vector<TrainerEngineConfig> trainer_layouts();
  std::vector<RolloutEngineConfig> rollout_layouts() const;
  TrainerChoice time_trainer(const SimulatedRun& s) const;
  std::vector<TrainerChoice> trainers();
  EngineChoice time_engine(const RolloutEngineConfig& layout) const;
  SimulationSettings engine_settings(const RolloutEngineConfig& layout) const;
  std::optional<RolloutEngineConfig> with_largest_cache(RolloutEngineConfig layout,
                                                        const TrainerEngineConfig& trainer) const;
  Status check_together(const RolloutEngineConfig& rollout,
                        const TrainerEngineConfig& trainer) const;

  const orchestrator::PipelineConfig& config_;
  const orchestrator::PlacementConfig& cards_;
  const Keep keep_;
  const SimulatedRun run_;
  const Batch batch_;
  actors::Packings packings_;
  std::int64_t fitting_ = 0;
};

/// Those that fit, fastest first.
std::vector<TrainerEngineConfig> Planner::trainer_layouts() {
  std::vector<TrainerEngineConfig> out;
  if (keep_ == Keep::Trainer) {
    if (actors::check_trainer(run_) && fits(run_, actors::trainer_memory(run_)))
      out.push_back(run_.config.trainer);
    return out;
  }
  for (const RankedTrainer& ranked : rank_trainers(run_,
                                                   TrainerDegrees::All,
                                                   OptimizerPlace::Either,
                                                   actors::device_capacity(run_),
                                                   packings_))
    out.push_back(ranked.layout);
  return out;
}

TrainerChoice Planner::time_trainer(const SimulatedRun& s) const {
  TrainerChoice out{s.config.trainer,
                    actors::trainer_layout(s).dp,
                    trainer::UpdateModel(s)(batch_.sequences),
                    actors::trainer_memory(s)};
  out.tokens_per_second = batch_.tokens / out.cost.total();
  return out;
}

/// The fastest, in that order.
std::vector<TrainerChoice> Planner::trainers() {
  std::vector<TrainerEngineConfig> layouts = trainer_layouts();
  fitting_ = std::ssize(layouts);
  layouts.resize(std::min(kTried + kShown, layouts.size()));
  SimulatedRun s = run_;
  std::vector<TrainerChoice> out;
  for (const TrainerEngineConfig& layout : layouts) {
    s.config.trainer = layout;
    out.push_back(time_trainer(s));
  }
  return out;
}

std::vector<RolloutEngineConfig> Planner::rollout_layouts() const {
  if (keep_ == Keep::Rollout)
    return {run_.config.rollout};
  const std::int64_t cards = std::ssize(cards_.rollout) / config_.rollout.replicas;
  const std::int64_t devices = cards * run_.cluster.dies_per_card;
  const std::int64_t experts = run_.model.moe ? run_.model.moe->experts : 1;
  std::vector<RolloutEngineConfig> out;
  for (const std::int64_t tp : sim_hw::divisors_up_to(run_.model.heads, devices)) {
    for (const std::int64_t ep : sim_hw::divisors_up_to(experts, devices)) {
      RolloutEngineConfig c = run_.config.rollout;
      c.tp = tp;
      c.ep = ep;
      if (devices % tp == 0 && devices % ep == 0)
        out.push_back(c);
    }
  }
  return out;
}

SimulationSettings Planner::engine_settings(const RolloutEngineConfig& layout) const {
  SimulationSettings s{run_};
  s.config.rollout = layout;
  s.rollout_cards = std::ssize(cards_.rollout);
  s.cards = std::ssize(cards_.rollout) / config_.rollout.replicas;
  s.concurrency = config_.rollout.concurrency;
  s.colocated = config_.placement.mode == orchestrator::PlacementMode::Colocated ||
                config_.placement.mode == orchestrator::PlacementMode::Fused;
  return s;
}

EngineChoice Planner::time_engine(const RolloutEngineConfig& layout) const {
  const SimulationSettings s = engine_settings(layout);
  rollout::EngineCost cost(s);
  EngineChoice out;
  out.layout = layout;
  out.replicas = cost.replicas();
  const std::int64_t wanted =
      std::max<std::int64_t>(1, (s.concurrency + out.replicas - 1) / out.replicas);
  const auto cached = static_cast<double>(actors::kv_tokens(s).count());
  const std::int64_t slots =
      std::clamp<std::int64_t>(sim_hw::slots_in(batch_.lengths, cached), 1, wanted);
  out.running = std::min<std::int64_t>(slots * out.replicas, s.concurrency);
  const auto n = static_cast<double>(out.running);
  out.step = cost.decode(out.running)
                 .seconds(1, static_cast<std::int64_t>(std::ceil(n * batch_.lengths.context)));
  const auto prompt =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(batch_.lengths.prompt)));
  const std::int64_t of_pass =
      std::max<std::int64_t>(1, out.replicas * layout.prefill_tokens / prompt);
  const double pass = cost.prefill(
      std::deque<rollout::PrefillPiece>(static_cast<std::size_t>(of_pass), {.tokens = prompt}));
  out.prefill = pass / static_cast<double>(of_pass) * n / batch_.lengths.response;
  out.tokens_per_second =
      n * static_cast<double>(config_.rollout.replicas) / (out.step + out.prefill);
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

/// The memory only rises with the share, but for a cache that must hold one longest response.
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
      return std::nullopt;  // Does not divide, or too small a cache: less will not help.
    if (std::ranges::all_of(*phases, [&](const actors::PhaseLedger& phase) {
          return phase.device() <= actors::device_capacity(s) &&
                 phase.host() <= actors::host_capacity(s);
        }))
      return layout;
  }
  return std::nullopt;
}

Result<ConfigPlan> Planner::run() {
  ConfigPlan plan;
  plan.config = config_;
  plan.trainer_cards = run_.trainer_cards;
  plan.engines = config_.rollout.replicas;
  plan.engine_cards = std::ssize(cards_.rollout) / config_.rollout.replicas;
  plan.device_memory = actors::device_capacity(run_);
  plan.host_memory = actors::host_capacity(run_);
  plan.lengths = batch_.lengths;
  std::vector<TrainerChoice> ranked = trainers();
  plan.scenarios = fitting_;
  if (ranked.empty()) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("no layout of the trainer fits its {} cards of {}",
                             run_.trainer_cards,
                             run_.cluster.name)};
  }
  for (std::size_t i = 0; i < std::min(kTried, ranked.size()) && plan.rollouts.empty(); ++i) {
    for (const RolloutEngineConfig& layout : rollout_layouts()) {
      if (const auto filled = with_largest_cache(layout, ranked[i].layout))
        plan.rollouts.push_back(time_engine(*filled));
    }
    if (!plan.rollouts.empty())
      plan.trainers.assign(
          ranked.begin() + static_cast<std::ptrdiff_t>(i),
          ranked.begin() + static_cast<std::ptrdiff_t>(std::min(i + kShown, ranked.size())));
  }
  if (plan.rollouts.empty()) {
    const Status together = check_together(config_.simulation.rollout, ranked.front().layout);
    return Error{ErrorCode::OutOfMemory,
                 "no rollout layout fits beside the trainer" +
                     (together ? std::string() : ": " + together.error().context)};
  }
  std::ranges::stable_sort(plan.rollouts, std::ranges::greater(), &EngineChoice::tokens_per_second);
  plan.rollouts.resize(std::min(kShown, plan.rollouts.size()));
  SimulatedRun s = run_;
  if (actors::check_trainer(s))
    plan.configured_trainer = time_trainer(s);
  const SimulationSettings engine = engine_settings(run_.config.rollout);
  if (actors::check_rollout(engine) && actors::kv_tokens(engine).count() > 0)
    plan.configured_rollout = time_engine(run_.config.rollout);
  plan.config.simulation.trainer = plan.trainers.front().layout;
  plan.config.simulation.rollout = plan.rollouts.front().layout;
  return plan;
}

}  // namespace

std::vector<std::pair<std::string_view, double>> TrainerChoice::entries() const {
  const auto of_step = cost.time.entries();
  std::vector<std::pair<std::string_view, double>> out(of_step.begin(), of_step.end());
  out.emplace_back("attention of packed sequences", cost.attention_correction);
  out.emplace_back("optimizer states to and from the host", cost.host_transfer);
  return out;
}

Result<ConfigPlan> plan_config(const orchestrator::PipelineConfig& config, Keep keep) {
  TEMPER_TRY(const orchestrator::ResolvedPipeline pipeline, orchestrator::resolve(config));
  if (!pipeline.simulation)
    return invalid_input("a plan needs `hardware: simulated`");
  return Planner(pipeline, keep).run();
}

}  // namespace temper::study
