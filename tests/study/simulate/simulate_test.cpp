#include "study/simulate/simulate.hpp"

#include "core/yaml.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/simulated_actors.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

namespace temper::study {

using namespace orchestrator;
namespace {

namespace fs = std::filesystem;
using actors::CardState;
using temper::testing::small_pipeline;

/// The summary of `temper run --driver in-process`.
Summary summary_of_run(const PipelineConfig& config) {
  const test::TemporaryFolder folder;
  VirtualOptions options;
  options.pipeline = *resolve(config);
  options.log = folder / "events.log";
  std::vector<std::string> names;
  for (const ActorSpec& spec : options.pipeline.slots)
    names.push_back(spec.name);
  const auto recorder = RunRecorder::create(folder.path()).value();
  RunObserver observer;
  observer.on_record = [&](const Record& record) { recorder->feed(record); };
  const auto driver =
      VirtualDriver::create(std::move(options),
                            std::make_unique<InProcessHost>(std::move(names), SimulatedActors()),
                            observer,
                            Log::discard())
          .value();
  const RunOutcome outcome = driver->run();
  EXPECT_TRUE(outcome.finish.ok) << outcome.finish.reason;
  Summary summary = recorder->close({config.name, config.seed, outcome.log_hash}).value();
  return summary;
}

double sum(const std::map<CardState, double>& states) {
  return std::accumulate(
      states.begin(), states.end(), 0.0, [](double s, const auto& e) { return s + e.second; });
}

TEST(Simulate, WholeFiguresMatchTheSummary) {
  const Summary summary = summary_of_run(small_pipeline());
  const auto figures = simulate(small_pipeline());
  ASSERT_TRUE(figures) << figures.error().context;
  const Rates& whole = figures->whole;
  EXPECT_EQ(whole.updates, summary.steps);
  EXPECT_EQ(whole.seconds, summary.wall_s);
  EXPECT_EQ(whole.trained_per_s, summary.tokens.trained_per_s);
  EXPECT_EQ(whole.generated_per_s, summary.tokens.generated_per_s);
  EXPECT_EQ(whole.busy, summary.utilization.busy);
  EXPECT_EQ(whole.states, summary.utilization.states);
  EXPECT_EQ(whole.staleness_mean, summary.staleness.mean);
  EXPECT_EQ(whole.staleness_max, summary.staleness.max);
  EXPECT_GT(whole.trained_per_s, 0);
}

TEST(Simulate, SteadyFiguresExcludeTheEndsOfARun) {
  // 8 updates at bound 1: from the completion of update 2 to that of update 7.
  const auto figures = simulate(small_pipeline());
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->steady.updates, 5U);
  EXPECT_LT(figures->steady.seconds, figures->whole.seconds);
  EXPECT_GT(figures->steady.busy, figures->whole.busy);  // start-up loads weights
  EXPECT_LE(figures->steady.sustained_per_s, figures->steady.trained_per_s);
  EXPECT_EQ(steps_for(5, 1), 8U);
}

TEST(Simulate, TheSteadyIntervalHasWholeTurnsOnTimeSharedCards) {
  // Equal lengths and bound 2: a turn trains three updates. Without the cut, an interval of four or
  // five updates would contain one or two generations.
  PipelineConfig config = small_pipeline();
  config.placement.mode = PlacementMode::Fused;
  config.placement.rollout_cards = config.placement.reference_cards = 0;
  config.placement.return_share = 0;
  config.staleness.bound = 2;
  config.simulation.response.kind = actors::LengthKind::Constant;
  std::vector<double> each;
  for (const std::uint64_t measured : {6U, 7U, 8U, 9U}) {
    config.steps = steps_for(measured, 2);
    const auto figures = simulate(config);
    ASSERT_TRUE(figures) << figures.error().context;
    EXPECT_EQ(figures->steady.updates % 3, 0U) << measured;
    each.push_back(figures->steady.seconds_per_update);
  }
  for (const double seconds : each)
    EXPECT_NEAR(seconds / each.front(), 1, 0.05);
}

TEST(Simulate, TheTrainersIdleCardsGenerateUnderABoundToo) {
  // Half of the cards wait for the other half most of the time. Responses generated for later
  // batches must not keep them from generating.
  PipelineConfig config = small_pipeline();
  config.reference.replicas = 0;
  config.placement.reference_cards = 0;
  config.staleness.bound = 2;
  config.rollout.concurrency = 8;
  config.steps = steps_for(10, 2);
  const auto separate = simulate(config);
  config.placement.mode = PlacementMode::Hybrid;
  const auto hybrid = simulate(config);
  ASSERT_TRUE(separate) << separate.error().context;
  ASSERT_TRUE(hybrid) << hybrid.error().context;
  EXPECT_GT(hybrid->steady.sustained_per_s, 1.05 * separate->steady.sustained_per_s);
}

TEST(Simulate, StatesOfTheSteadyIntervalAddUpToOne) {
  const auto figures = simulate(small_pipeline());
  ASSERT_TRUE(figures);
  EXPECT_NEAR(sum(figures->steady.states), 1, 1e-12);
  EXPECT_GT(figures->steady.states.at(CardState::Decode), 0);
  EXPECT_GT(figures->steady.states.at(CardState::Train), 0);
}

TEST(Simulate, AShortRunIsUsedWhole) {
  PipelineConfig config = small_pipeline();
  config.steps = 3;  // bound 1 needs 4
  const auto figures = simulate(config);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->steady.updates, 3U);
  EXPECT_EQ(figures->steady.trained_per_s, figures->whole.trained_per_s);
}

TEST(Simulate, ResponsesOfEvaluationsAreNotAmongThoseBegun) {
  PipelineConfig config = small_pipeline();
  const auto without = simulate(config);
  config.evaluation.every = 4;
  config.evaluation.problems = 5;
  const auto with = simulate(config);
  ASSERT_TRUE(without) << without.error().context;
  ASSERT_TRUE(with) << with.error().context;
  EXPECT_GT(with->whole.seconds, without->whole.seconds);
  EXPECT_EQ(with->accounts.begun_length, without->accounts.begun_length);
}

TEST(Simulate, ARefusedConfigurationKeepsItsReason) {
  PipelineConfig config = small_pipeline();
  config.simulation.model = "deepseek-v3";
  const auto figures = simulate(config);
  ASSERT_FALSE(figures);
  EXPECT_EQ(figures.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(figures.error().context.find("simulation"), std::string::npos)
      << figures.error().context;
  config = small_pipeline();
  config.rollout.replicas = 3;
  const auto uneven = simulate(config);
  ASSERT_FALSE(uneven);
  EXPECT_NE(uneven.error().context.find("rollout.replicas: must divide the 4 cards"),
            std::string::npos)
      << uneven.error().context;
}

TEST(Simulate, ARunThatCannotFinishReportsTheReason) {
  PipelineConfig config = small_pipeline();
  config.deadlines.train = std::chrono::milliseconds(10);
  const auto figures = simulate(config);
  ASSERT_FALSE(figures);
  EXPECT_NE(figures.error().context.find("did not train"), std::string::npos)
      << figures.error().context;
}

TEST(SimulateAll, KeepsTheirOrderOnAnyNumberOfThreads) {
  std::vector<PipelineConfig> configs(6, small_pipeline());
  for (std::size_t i = 0; i < configs.size(); ++i)
    configs[i].staleness.bound = static_cast<std::int32_t>(i % 3);
  configs[4].rollout.replicas = 3;  // refused
  std::vector<std::size_t> seen;
  SimulateOptions options;
  options.on_progress = [&](std::size_t done, std::size_t of) {
    EXPECT_EQ(of, 6U);
    seen.push_back(done);
  };
  const auto one = simulate_all(configs, options);
  options.threads = 4;
  const auto four = simulate_all(configs, options);
  EXPECT_EQ(seen, (std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(one.size(), 6U);
  ASSERT_EQ(four.size(), 6U);
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].has_value(), i != 4);
    ASSERT_EQ(four[i].has_value(), i != 4);
    if (i != 4) {
      EXPECT_EQ(to_yaml(*one[i]), to_yaml(*four[i]));
    }
  }
  EXPECT_GT(one[1]->steady.sustained_per_s, one[0]->steady.sustained_per_s);
}

TEST(SimulateAll, BeginsNoRunOnceItIsStopped) {
  const std::vector<PipelineConfig> configs(3, small_pipeline());
  int asked = 0;
  SimulateOptions options;
  options.stop = [&] { return ++asked > 1; };
  const auto results = simulate_all(configs, options);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0]);
  for (const std::size_t i : {1U, 2U}) {
    ASSERT_FALSE(results[i]);
    EXPECT_EQ(results[i].error().code, ErrorCode::Unavailable);
  }
}

TEST(SimulateAll, OfNoInputIsEmpty) {
  EXPECT_TRUE(simulate_all({}, {.threads = 3, .on_progress = nullptr}).empty());
}

TEST(Simulate, AWeightOfOneIsTheFullRun) {
  const PipelineConfig config = small_pipeline();
  const auto whole = simulate(config).value();
  const auto sampled = simulate_sampled(resolve(config).value(), 1).value();
  EXPECT_EQ(sampled.whole.seconds, whole.whole.seconds);
  EXPECT_EQ(sampled.steady.sustained_per_s, whole.steady.sustained_per_s);
  EXPECT_EQ(sampled.accounts.staleness, whole.accounts.staleness);
}

TEST(Simulate, ASampledRunHasAboutTheRatesOfTheFullRun) {
  // Equal lengths and instant rewards, so that draws do not matter;
  // the difference is rounding.
  PipelineConfig config = small_pipeline();
  config.algorithm.groups_per_update = 64;
  config.rollout.concurrency = 128;
  config.simulation.response.kind = actors::LengthKind::Constant;
  config.simulation.reward.mean = {};
  config.simulation.report_every = std::chrono::milliseconds(10);
  const auto pipeline = resolve(config).value();
  ASSERT_EQ(largest_weight(pipeline, 4), 4);
  const auto whole = simulate(config).value();
  const auto sampled = simulate_sampled(pipeline, 4).value();
  EXPECT_NEAR(sampled.whole.seconds / whole.whole.seconds, 1, 0.05);
  EXPECT_NEAR(sampled.steady.sustained_per_s / whole.steady.sustained_per_s, 1, 0.05);
  EXPECT_EQ(sampled.accounts.generated, whole.accounts.generated);
  EXPECT_EQ(sampled.accounts.groups_trained, whole.accounts.groups_trained);
}

TEST(Simulate, ASampledRunScoresAsManyResponsesAtOnceAsTheFullRun) {
  PipelineConfig config = small_pipeline();
  config.algorithm.groups_per_update = 64;
  config.rollout.concurrency = 256;
  const ResolvedPipeline pipeline = resolve(config).value();
  ASSERT_EQ(largest_weight(pipeline, 4), 4);
  const ResolvedPipeline sampled = sampled_pipeline(pipeline, 4);
  EXPECT_EQ(4 * scheduler_config(sampled).score_batch, scheduler_config(pipeline).score_batch);
}

TEST(Simulate, AWeightDividesGroupsSlotsAndReplicas) {
  PipelineConfig config = small_pipeline();  // 8 groups; engines of 2 cards, 4 replicas
  config.rollout.concurrency = 128;
  const auto pipeline = resolve(config).value();
  EXPECT_EQ(largest_weight(pipeline, 8), 4);
  EXPECT_EQ(largest_weight(pipeline, 3), 2);
}

TEST(Simulate, RunsWithToolsAreNeverSampled) {
  PipelineConfig config = small_pipeline();
  config.rollout.concurrency = 128;
  ASSERT_EQ(largest_weight(resolve(config).value(), 4), 4);
  config.simulation.tools.emplace();
  EXPECT_EQ(largest_weight(resolve(config).value(), 4), 1);
}

TEST(Simulate, AnEngineOfASampledRunHasRoomForEightGroups) {
  PipelineConfig config = small_pipeline();  // groups of 4, which are dispatched whole
  config.rollout.concurrency = 64;
  EXPECT_EQ(largest_weight(resolve(config).value(), 8), 2);
  config.rollout.concurrency = 56;
  EXPECT_EQ(largest_weight(resolve(config).value(), 8), 1);
}

}  // namespace
}  // namespace temper::study
