#include "study/plan/plan_pipeline.hpp"

#include "orchestrator/pipeline/simulation.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "study/simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::study {
namespace {

constexpr std::int64_t kGroup = 16;  ///< Responses per prompt, if it divides the batch.

Result<std::int32_t> whole_cards(const PlanSubject& subject, std::int64_t devices) {
  if (devices % subject.spec.dies_per_card != 0) {
    return invalid_input(fmt::format("the plan uses {} devices, expected whole cards of {}",
                                     devices,
                                     subject.spec.dies_per_card));
  }
  return static_cast<std::int32_t>(devices / subject.spec.dies_per_card);
}

actors::LengthConfig constant_length(double tokens) {
  actors::LengthConfig out;
  out.kind = actors::LengthKind::Constant;
  out.mean = std::max(1.0, std::round(tokens));
  out.cap = Tokens(static_cast<std::int64_t>(out.mean));
  return out;
}

/// Settings of both sides: time-shared on these cards, without a reference.
orchestrator::PipelineConfig skeleton(const PlanSubject& subject, std::int32_t cards) {
  orchestrator::PipelineConfig c;
  c.name = "plan-" + subject.model;
  c.steps = 5;
  c.hardware = orchestrator::HardwareKind::Simulated;
  c.policy = actors::PolicyKind::Synthetic;
  c.algorithm.minibatches = 1;
  c.staleness.bound = 0;
  c.placement.mode = orchestrator::PlacementMode::Colocated;
  c.placement.cards = cards;
  c.reference.replicas = 0;
  c.simulation.cluster = subject.hardware;
  c.simulation.model = subject.model;
  orchestrator::set_simulated_defaults(c, [](const std::string&) { return false; });
  return c;
}

void set_batch(orchestrator::PipelineConfig& c, std::int64_t sequences) {
  const std::int64_t group = sim_hw::divisors_up_to(sequences, kGroup).back();
  c.algorithm.responses_per_group = static_cast<std::int32_t>(group);
  c.algorithm.groups_per_update = static_cast<std::int32_t>(sequences / group);
}

/// Engines of equal size over all cards, each size with its best layout; the most tokens/s that fit
/// with the trainer.
Result<orchestrator::PipelineConfig> with_engines(const orchestrator::PipelineConfig& base,
                                                  const PlanSubject& subject,
                                                  const sim_hw::ModelSpec& model) {
  const std::int64_t cards = base.placement.cards;
  sim_hw::RolloutProblem problem(model, subject.spec, cards);
  problem.staging = sim_hw::WeightStaging::None;
  const std::vector<double> responses{base.simulation.response.mean};
  problem.lengths = sim_hw::rollout_lengths(base.simulation.prompt.mean, responses);
  std::vector<sim_hw::RolloutPlan> plans;
  for (const std::int64_t of_engine : sim_hw::divisors_up_to(cards, cards)) {
    sim_hw::RolloutSpace space = sim_hw::full_rollout_space(problem);
    space.engine_devices = of_engine * subject.spec.dies_per_card;
    const sim_hw::RolloutSearch search = sim_hw::search_rollout(problem, space, 1);
    plans.insert(plans.end(), search.best.begin(), search.best.end());
  }
  std::ranges::stable_sort(plans, std::ranges::greater(), &sim_hw::RolloutPlan::tokens_per_second);
  Error last{ErrorCode::OutOfMemory, "no rollout engine fits on the trainer's cards"};
  for (const sim_hw::RolloutPlan& plan : plans) {
    orchestrator::PipelineConfig c = base;
    c.rollout.replicas = static_cast<std::int32_t>(plan.engines);
    c.rollout.concurrency =
        static_cast<std::int32_t>(plan.scenario.slots * plan.scenario.replicas());
    c.simulation.rollout.tp = plan.scenario.tp;
    c.simulation.rollout.ep = plan.scenario.ep;
    Result<ConfigPlan> both = plan_config(c, FixedSide::Trainer);
    if (both)
      return std::move(both->config);
    last = both.error();
  }
  return last;
}

/// Reports a broken rule as `temper check` would.
Result<orchestrator::PipelineConfig> checked(Result<orchestrator::PipelineConfig> config) {
  if (!config)
    return config;
  if (Status rules = check_rules(*config); !rules)
    return std::move(rules).error().within("the pipeline made from this plan");
  return config;
}

}  // namespace

Result<orchestrator::PipelineConfig> pipeline_of(const PlanSubject& subject,
                                                 const sim_hw::TrainProblem& problem,
                                                 const sim_hw::TrainPlan& plan) {
  const sim_hw::Layout& layout = plan.scenario.layout;
  const sim_hw::TrainShape& shape = plan.scenario.shape;
  if (layout.expert_tp != 1) {
    return invalid_input(fmt::format(
        "a pipeline does not split experts, but the plan splits each over {}; nearest: expert_tp=1",
        layout.expert_tp));
  }
  TEMPER_TRY(const std::int32_t cards, whole_cards(subject, layout.devices()));
  orchestrator::PipelineConfig c = skeleton(subject, cards);
  set_batch(c, shape.global_batch);
  const double seq = static_cast<double>(shape.seq);
  c.simulation.prompt = constant_length(std::min(512.0, seq / 8));
  c.simulation.response = constant_length(seq - c.simulation.prompt.mean);
  actors::TrainerEngineConfig& t = c.simulation.trainer;
  t.tp = layout.tp;
  t.pp = layout.pp;
  t.vpp = layout.vpp;
  t.ep = layout.ep;
  t.cp = layout.cp;
  t.micro_batch_tokens = shape.seq * shape.micro_batch;
  t.optimizer_on_host = plan.scenario.state != sim_hw::TrainerState::Active;
  return checked(with_engines(c, subject, problem.model));
}

Result<orchestrator::PipelineConfig> pipeline_of(const PlanSubject& subject,
                                                 const sim_hw::RolloutProblem& problem,
                                                 const sim_hw::RolloutPlan& plan,
                                                 const actors::LengthConfig& response) {
  TEMPER_TRY(const std::int32_t cards,
             whole_cards(subject, plan.engines * plan.scenario.engine_devices));
  orchestrator::PipelineConfig c = skeleton(subject, cards);
  const std::int64_t slots = plan.all_slots();
  set_batch(c, slots > kGroup ? slots / kGroup * kGroup : slots);
  c.simulation.prompt = constant_length(problem.lengths.prompt);
  c.simulation.response = response;
  c.rollout.replicas = static_cast<std::int32_t>(plan.engines);
  c.rollout.concurrency = static_cast<std::int32_t>(plan.scenario.slots * plan.scenario.replicas());
  c.simulation.rollout.tp = plan.scenario.tp;
  c.simulation.rollout.ep = plan.scenario.ep;
  c.simulation.rollout.kv_share = plan.kv_share;
  c.simulation.rollout.prefill_tokens = static_cast<std::int64_t>(problem.prefill_tokens);
  TEMPER_TRY(ConfigPlan both, plan_config(c, FixedSide::Rollout));
  return checked(std::move(both.config));
}

}  // namespace temper::study
