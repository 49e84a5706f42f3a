#include "study/machine/machine_run.hpp"

#include "core/yaml.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace temper::study {

using namespace orchestrator;
namespace {

constexpr double kMs = 1000;  // in microseconds

/// Work takes whole milliseconds; messages and starts take none.
MachineModel round_machine() {
  MachineModel c;
  c.cores = 2;
  c.config = "round";
  for (const int threads : {1, 2}) {
    EngineTimes e;
    e.threads = threads;
    e.decode = {{1, 2 * kMs, 0}, {1024, 2 * kMs, 0}};
    e.prefill = {3 * kMs, 0, 0, 0};
    e.update = {40 * kMs, 0, 0, 0, 0, 0};
    e.reference = {5 * kMs, 0, 0};
    c.engines.push_back(e);
  }
  c.weights = {1 * kMs, 6 * kMs, 1 * kMs, 0};
  c.response.kind = actors::LengthKind::Constant;
  c.response.mean = 4;
  c.response.cap = Tokens(8);
  return c;
}

/// One batch of four responses at a time.
PipelineConfig round_pipeline() {
  PipelineConfig c;
  c.name = "round";
  c.steps = 10;
  c.algorithm.groups_per_update = 2;
  c.algorithm.responses_per_group = 2;
  c.algorithm.kl = 0.001;
  c.sampling.max_new_tokens = Tokens(8);
  c.rollout.concurrency = 4;
  c.staleness.bound = 0;
  c.checkpoint.every = 0;
  return c;
}

TEST(MachineRun, ASynchronousRunIsTheSumOfItsParts) {
  const auto figures = forecast_run(round_pipeline(), round_machine());
  ASSERT_TRUE(figures) << figures.error().context;
  // Of each version: staged 6 ms, committed 1, prefill 3, four decode steps of 2, reference 5;
  // update 40, export 1: 64 ms. The reward costs nothing.
  EXPECT_NEAR(figures->whole.seconds, 10 * 0.064, 1e-6);
  EXPECT_EQ(figures->whole.updates, 10U);
  EXPECT_EQ(figures->whole.staleness_mean, 0);
  EXPECT_NEAR(figures->whole.states.at(actors::CardState::Train), 40.0 / 128, 1e-6);
  EXPECT_NEAR(figures->whole.states.at(actors::CardState::Decode), 8.0 / 128, 1e-6);
  EXPECT_NEAR(figures->whole.states.at(actors::CardState::Reference), 5.0 / 128, 1e-6);
  EXPECT_NEAR(figures->whole.generated_per_s, 16 / 0.064, 1);
}

TEST(MachineRun, WithABoundTheTrainerIsTheBottleneck) {
  PipelineConfig config = round_pipeline();
  config.staleness.bound = 2;
  config.steps = 40;
  const auto figures = forecast_run(config, round_machine());
  ASSERT_TRUE(figures) << figures.error().context;
  EXPECT_NEAR(figures->steady.seconds_per_update, 0.041, 0.0005);
  EXPECT_LE(figures->whole.staleness_max, 2);
  EXPECT_GT(figures->whole.staleness_mean, 1);
}

TEST(MachineRun, SharedCardsAreTimeShared) {
  PipelineConfig config = round_pipeline();
  config.placement.mode = PlacementMode::Colocated;
  MachineModel machine = round_machine();
  machine.switches.offload_us = 2 * kMs;
  machine.switches.onload_us = 3 * kMs;
  const auto figures = forecast_run(config, machine);
  ASSERT_TRUE(figures) << figures.error().context;
  // As above; also the optimizer is offloaded before every rollout and loaded after it. While new
  // weights are staged no role has the cards: that is part of the switch.
  EXPECT_NEAR(figures->whole.seconds, 10 * (0.064 + 0.005), 1e-6);
  EXPECT_NEAR(figures->whole.states.at(actors::CardState::Switch), (5.0 + 6) / 69, 1e-6);
}

TEST(MachineRun, ActorsOnOneCoreShareIt) {
  // All actors on card 0: nothing more overlaps than before, but the orchestrator
  // and the staging take their time from it.
  PipelineConfig config = round_pipeline();
  config.placement.mode = PlacementMode::Colocated;
  config.placement.cards = 1;
  MachineModel machine = round_machine();
  machine.cores = 1;
  machine.processes.orchestrator = {100, 0};
  const auto slow = forecast_run(config, machine);
  machine.processes.orchestrator = {0, 0};
  const auto fast = forecast_run(config, machine);
  ASSERT_TRUE(slow && fast);
  EXPECT_GT(slow->whole.seconds, fast->whole.seconds);
}

TEST(MachineRun, IsDeterministic) {
  PipelineConfig config = round_pipeline();
  config.staleness.bound = 1;
  MachineModel machine = round_machine();
  machine.processes.orchestrator = machine.processes.rollout = {17, 1.3};
  machine.processes.hop_us = 11;
  machine.slowdowns = {1.1, 1.2, 1.3, 1.05};
  const std::vector<PipelineConfig> configs(3, config);
  const auto all = forecast_all(configs, machine, {.threads = 2, .on_progress = {}});
  ASSERT_TRUE(all[0] && all[1] && all[2]);
  EXPECT_EQ(all[0]->whole.seconds, all[1]->whole.seconds);
  EXPECT_EQ(all[0]->whole.seconds, all[2]->whole.seconds);
}

/// Episodes of 4 tokens: a sampled one, a call and its answer of one token, a sampled one, a call
/// and an empty answer, a sampled one.
PipelineConfig pipeline_with_agent() {
  PipelineConfig c = round_pipeline();
  c.rollout.agent.command = {"agent"};
  c.simulation.response.kind = actors::LengthKind::Constant;
  c.simulation.response.mean = 4;
  c.simulation.response.cap = Tokens(8);
  actors::ToolConfig& tools = c.simulation.tools.emplace();
  tools.turn.kind = tools.result.kind = actors::LengthKind::Constant;
  tools.turn.mean = tools.result.mean = 1;
  tools.latency.mean = std::chrono::milliseconds(50);
  tools.latency.p99_over_median = 1;
  return c;
}

TEST(MachineRun, AnAgentWaitsForItsToolsAndItsContextIsComputedAgain) {
  const auto figures = forecast_run(pipeline_with_agent(), round_machine());
  ASSERT_TRUE(figures) << figures.error().context;
  // Of each version: staged 6 ms, committed 1, three turns of prefill 3 and a decode step of 2, two
  // calls of 50, reference 5; update 40, export 1: 168 ms.
  EXPECT_NEAR(figures->whole.seconds, 10 * 0.168, 1e-6);
  EXPECT_NEAR(figures->whole.states.at(actors::CardState::WaitTools), 100.0 / 336, 1e-6);
  EXPECT_NEAR(figures->whole.states.at(actors::CardState::Decode), 6.0 / 336, 1e-6);
  EXPECT_NEAR(figures->whole.generated_per_s, 16 / 0.168, 1);
}

TEST(MachineRun, ABoundHidesToolCalls) {
  PipelineConfig config = pipeline_with_agent();
  config.staleness.bound = 4;
  config.rollout.concurrency = 64;
  config.steps = 40;
  const auto figures = forecast_run(config, round_machine());
  ASSERT_TRUE(figures) << figures.error().context;
  EXPECT_NEAR(figures->steady.seconds_per_update, 0.041, 0.002);
  EXPECT_LE(figures->whole.staleness_max, 4);
}

TEST(MachineRun, EpisodesOnCardsInTurnBeginAnew) {
  PipelineConfig config = pipeline_with_agent();
  config.placement.mode = PlacementMode::Colocated;
  config.placement.return_share = 0.5;
  config.staleness.bound = 2;
  config.rollout.concurrency = 64;
  const auto figures = forecast_run(config, round_machine());
  ASSERT_TRUE(figures) << figures.error().context;
  EXPECT_EQ(figures->whole.updates, 10U);
  EXPECT_LE(figures->whole.staleness_max, 2);
}

TEST(MachineRun, RefusesUnmeasuredSettingsAndNamesValidOnes) {
  const auto reason = [](const auto& change) {
    PipelineConfig config = round_pipeline();
    MachineModel machine = round_machine();
    change(config, machine);
    const auto refused = forecast_run(config, machine);
    return refused ? std::string("accepted") : refused.error().context;
  };
  using C = PipelineConfig;
  using M = MachineModel;
  EXPECT_NE(reason([](C& c, M&) { c.rollout.agent.command = {"agent"}; }).find("simulation.tools"),
            std::string::npos);
  EXPECT_NE(reason([](C& c, M&) {
              c = pipeline_with_agent();
              c.simulation.response.cap = Tokens(9);
            }).find("simulation.response.cap: found 9"),
            std::string::npos);
  EXPECT_NE(reason([](C& c, M&) { c.model.hidden = 128; }).find("hidden: 128"), std::string::npos);
  EXPECT_NE(reason([](C& c, M&) { c.sampling.max_new_tokens = Tokens(9); }).find("9"),
            std::string::npos);
  EXPECT_NE(reason([](C& c, M&) { c.policy = actors::PolicyKind::Synthetic; }).find("policy"),
            std::string::npos);
  EXPECT_NE(
      reason([](C& c, M&) { c.hardware = HardwareKind::Simulated; }).find("temper run CONFIG"),
      std::string::npos);
  EXPECT_NE(reason([](C&, M& m) { m.cores = 1; }).find("placement.cards=1"), std::string::npos);
  EXPECT_NE(reason([](C& c, M& m) {
              c.placement.mode = PlacementMode::Colocated;
              m.engines.pop_back();
            }).find("2 threads"),
            std::string::npos);
}

TEST(MachineModel, RoundTrips) {
  const std::string file = test::temporary_file("local_round.yaml");
  MachineModel machine = round_machine();
  machine.fits.push_back({"all", "made up", 3, 0.25, 0.5});
  ASSERT_TRUE(save_machine_model(machine, file, "none"));
  const auto read = load_machine_model(file);
  ASSERT_TRUE(read) << read.error().context;
  EXPECT_EQ(to_yaml(*read), to_yaml(machine));
}

TEST(MachineModel, InvalidFilesAreRefusedWithTheLine) {
  const std::string file = test::temporary_file("local_wrong.yaml");
  std::ofstream(file) << "cores: 2\nengine: 3\n";
  const auto unknown = load_machine_model(file);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().context.find(":2"), std::string::npos) << unknown.error().context;
  std::ofstream(file) << "cores: 2\n";
  const auto empty = load_machine_model(file);
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().context.find("temper measure"), std::string::npos);
}

}  // namespace
}  // namespace temper::study
