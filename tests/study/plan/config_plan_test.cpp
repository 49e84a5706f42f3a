// Plans of both sides of a pipeline, and pipelines made of plans.
#include "study/plan/config_plan.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/simulated_reference.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/plan/train_search.hpp"
#include "study/plan/plan_pipeline.hpp"
#include "study/simulate/simulate.hpp"

#include <gtest/gtest.h>

namespace temper::study {

using namespace orchestrator;
namespace {

PipelineConfig load(const std::string& name) {
  const auto config = load_config(std::string(TEMPER_SOURCE_DIR) + "/configs/" + name);
  EXPECT_TRUE(config) << config.error().context;
  return config ? *config : PipelineConfig{};
}

TEST(ConfigPlan, IsNoWorseThanTheConfigurationOnEitherSide) {
  for (const char* name : {"cm384_pangu.yaml", "cm384_pangu_fused.yaml"}) {
    SCOPED_TRACE(name);
    const auto plan = plan_config(load(name));
    ASSERT_TRUE(plan) << plan.error().context;
    EXPECT_LE(plan->trainers.front().cost.total(), plan->configured_trainer->cost.total());
    EXPECT_GE(plan->rollouts.front().tokens_per_second,
              plan->configured_rollout->tokens_per_second);
    for (std::size_t i = 1; i < plan->trainers.size(); ++i)
      EXPECT_LE(plan->trainers[i - 1].cost.total(), plan->trainers[i].cost.total());
  }
}

TEST(ConfigPlan, IsValidAndFitsEveryPhase) {
  const auto plan = plan_config(load("cm384_pangu_fused.yaml"));
  ASSERT_TRUE(plan) << plan.error().context;
  const Status rules = check_rules(plan->config);
  EXPECT_TRUE(rules) << rules.error().context;
  const auto pipeline = resolve(plan->config);
  ASSERT_TRUE(pipeline) << pipeline.error().context;
  EXPECT_TRUE(check_memory(simulated_placement(*pipeline)));
}

TEST(ConfigPlan, ChangesOnlyTheLayouts) {
  const PipelineConfig before = load("cm384_pangu.yaml");
  const auto plan = plan_config(before);
  ASSERT_TRUE(plan) << plan.error().context;
  PipelineConfig after = plan->config;
  after.simulation.trainer = before.simulation.trainer;
  after.simulation.rollout = before.simulation.rollout;
  EXPECT_EQ(to_yaml(after), to_yaml(before));
}

TEST(ConfigPlan, ChoosesTheLayoutOfATeacherOfAnotherShape) {
  for (const char* name : {"cm384_pangu.yaml", "cm384_pangu_fused.yaml"}) {
    SCOPED_TRACE(name);
    PipelineConfig config = load(name);
    config.simulation.reference.model = "deepseek-v3";
    const auto plan = plan_config(config);
    ASSERT_TRUE(plan) << plan.error().context;
    ASSERT_TRUE(plan->reference);
    EXPECT_EQ(plan->config.simulation.reference, plan->reference->layout);
    const Status rules = check_rules(plan->config);
    EXPECT_TRUE(rules) << rules.error().context;
    const auto pipeline = resolve(plan->config);
    ASSERT_TRUE(pipeline) << pipeline.error().context;
    const actors::SimulationSettings own = actors::one_reference(simulated_placement(*pipeline));
    EXPECT_LE(actors::reference_memory(own).device.total(), actors::device_capacity(own));
    PipelineConfig other = plan->config;
    other.simulation.reference = {.model = "deepseek-v3", .tp = 8, .pp = 1, .ep = 32, .cp = 1};
    const auto whole = actors::one_reference(simulated_placement(*resolve(other)));
    ASSERT_TRUE(actors::check_reference(whole));
    const std::vector<Tokens> batch(traits_of(config.placement.mode).shares ? 8192 : 256,
                                    Tokens(7000));
    EXPECT_LE(actors::ReferenceModel(own).seconds(batch),
              1.02 * actors::ReferenceModel(whole).seconds(batch));
  }
}

TEST(ConfigPlan, KeepsTheRequestedSide) {
  const PipelineConfig config = load("cm384_pangu.yaml");
  const auto trainer = plan_config(config, FixedSide::Trainer);
  ASSERT_TRUE(trainer) << trainer.error().context;
  EXPECT_EQ(trainer->config.simulation.trainer.pp, config.simulation.trainer.pp);
  EXPECT_EQ(trainer->config.simulation.trainer.tp, config.simulation.trainer.tp);
  const auto rollout = plan_config(config, FixedSide::Rollout);
  ASSERT_TRUE(rollout) << rollout.error().context;
  EXPECT_EQ(rollout->config.simulation.rollout.tp, config.simulation.rollout.tp);
  EXPECT_EQ(rollout->config.simulation.rollout.ep, config.simulation.rollout.ep);
}

TEST(ConfigPlan, UpdateTimeMatchesItsTermsAndTheRun) {
  const PipelineConfig config = load("cm384_pangu.yaml");
  const auto plan = plan_config(config);
  ASSERT_TRUE(plan) << plan.error().context;
  for (const TrainerChoice& choice : plan->trainers) {
    double sum = 0;
    for (const auto& [name, seconds] : choice.entries())
      sum += seconds;
    EXPECT_NEAR(sum, choice.cost.total(), 1e-9 * sum);
  }
}

TEST(ConfigPlan, RepairsInvalidLayouts) {
  PipelineConfig config = load("cm384_pangu.yaml");
  config.simulation.trainer = {.tp = 3, .pp = 1, .vpp = 1, .ep = 1, .cp = 1};
  config.simulation.rollout.ep = 5;
  const auto plan = plan_config(config);
  ASSERT_TRUE(plan) << plan.error().context;
  EXPECT_FALSE(plan->configured_trainer);
  EXPECT_FALSE(plan->configured_rollout);
  EXPECT_TRUE(check_rules(plan->config));
}

TEST(ConfigPlan, ReportsThatNoTrainerFits) {
  PipelineConfig config = load("cm384_pangu.yaml");
  config.placement.cards = 264;  // 224 for rollout, 32 for the reference.
  const auto plan = plan_config(config);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().context, "no trainer layout fits its 8 cards of cm384");
}

struct Subjects {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  const sim_hw::HardwareSpec& hardware = **catalog.hardware("cm384");
  const sim_hw::ModelSpec& model = **catalog.model("qwen3-30b-a3b");
  PlanSubject subject{"cm384", "qwen3-30b-a3b", hardware};
};

/// As `temper check` and `temper run` would read it.
void expect_runs(const PipelineConfig& config, double tokens_per_update) {
  const LoadedConfig read("plan.yaml", to_yaml(config), {});
  EXPECT_TRUE(read.issues().empty()) << render(read.issues());
  const auto figures = simulate(read.config());
  ASSERT_TRUE(figures) << figures.error().context;
  EXPECT_EQ(figures->whole.updates, config.steps);
  EXPECT_NEAR(figures->whole.trained_per_s * figures->whole.seconds_per_update,
              tokens_per_update,
              0.02 * tokens_per_update);
}

TEST(PlanPipeline, RunsATrainingPlan) {
  const Subjects s;
  const sim_hw::TrainProblem problem(s.model, s.hardware, 8);
  sim_hw::TrainShape shape = sim_hw::default_shape(s.model);
  shape.global_batch = 64;
  shape.seq = 4096;
  sim_hw::TrainSpace space = sim_hw::full_space(problem, shape);
  space.expert_tp = {1};
  const sim_hw::TrainSearch search = sim_hw::search_train(problem, space, shape, {});
  ASSERT_FALSE(search.best.empty());
  const auto config = pipeline_of(s.subject, problem, search.best.front());
  ASSERT_TRUE(config) << config.error().context;
  EXPECT_EQ(config->simulation.trainer.tp, search.best.front().scenario.layout.tp);
  EXPECT_EQ(config->simulation.trainer.ep, search.best.front().scenario.layout.ep);
  expect_runs(*config, 64.0 * 4096);
}

TEST(PlanPipeline, RunsARolloutPlan) {
  const Subjects s;
  sim_hw::RolloutProblem problem(s.model, s.hardware, 8);
  const std::vector<double> responses{1000};
  problem.lengths = sim_hw::rollout_lengths(512, responses);
  const sim_hw::RolloutSearch search =
      sim_hw::search_rollout(problem, sim_hw::full_rollout_space(problem));
  ASSERT_FALSE(search.best.empty());
  const sim_hw::RolloutPlan& best = search.best.front();
  actors::LengthConfig response;
  response.kind = actors::LengthKind::Constant;
  response.mean = 1000;
  const auto config = pipeline_of(s.subject, problem, best, response);
  ASSERT_TRUE(config) << config.error().context;
  EXPECT_EQ(config->simulation.rollout.tp, best.scenario.tp);
  EXPECT_EQ(config->simulation.rollout.ep, best.scenario.ep);
  expect_runs(*config, static_cast<double>(best.all_slots() / 16 * 16) * 1512);
}

TEST(PlanPipeline, RefusesSplitExperts) {
  const Subjects s;
  const sim_hw::TrainProblem problem(s.model, s.hardware, 8);
  sim_hw::TrainPlan plan;
  plan.scenario.layout.tp = 2;
  plan.scenario.layout.expert_tp = 2;
  const auto config = pipeline_of(s.subject, problem, plan);
  ASSERT_FALSE(config);
  EXPECT_EQ(
      config.error().context,
      "a pipeline does not split experts, but the plan splits each over 2; nearest: expert_tp=1");
}

}  // namespace
}  // namespace temper::study
