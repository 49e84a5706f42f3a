#include "study/forecast/whatif.hpp"

#include "cli/study/whatif_command.hpp"
#include "core/files.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/simulated_actors.hpp"
#include "orchestrator/watch/predictions.hpp"
#include "study/machine/machine_host.hpp"
#include "study/machine/run_calibration.hpp"
#include "tests/support/small_pipeline.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

namespace temper::study {

using namespace orchestrator;
namespace {

namespace fs = std::filesystem;

/// A machine with invented times: a run on it takes no wall time.
MachineModel machine() {
  MachineModel c;
  c.cores = 2;
  EngineTimes e;
  e.decode = {{1, 30, 0}};
  e.prefill.row_us = 4;
  e.update.row_us = 60;
  e.reference.row_us = 10;
  c.engines = {e};
  c.weights = {300, 500, 50, 2000};
  c.reward.response_us = 1;
  c.processes.orchestrator = c.processes.trainer = {0, 2};
  c.processes.rollout = c.processes.reference = c.processes.reward = {0, 2};
  c.processes.start_us = 20000;
  return c;
}

PipelineConfig local_pipeline() {
  PipelineConfig c;
  c.name = "recorded";
  c.steps = 40;
  c.algorithm.groups_per_update = 8;
  c.algorithm.responses_per_group = 4;
  c.algorithm.kl = 0.001;
  c.rollout.concurrency = 64;
  c.staleness.bound = 0;
  return c;
}

/// A run folder of the invented machine.
class Recorded : public ::testing::Test {
 protected:
  Recorded()
      : folder_(fs::path(::testing::TempDir()) /
                fmt::format("whatif_{}", static_cast<long>(::getpid()))) {
    fs::remove_all(folder_);
  }
  ~Recorded() override { fs::remove_all(folder_); }

  fs::path local(const PipelineConfig& config) {
    auto world = std::make_unique<MachineWorld>();
    world->config = config;
    world->calibration = machine();
    world->prompt_length = [](GroupId) { return Tokens(7); };
    world->response_length = [](ResponseId r, GroupId) {
      return Tokens(2 + static_cast<std::int64_t>(r.value() % 5));
    };
    const ResolvedPipeline pipeline = resolve_cards(config);
    return record(pipeline, std::make_unique<MachineHost>(std::move(world), pipeline.slots));
  }

  fs::path simulated(const PipelineConfig& config) {
    const ResolvedPipeline pipeline = resolve(config).value();
    std::vector<std::string> names;
    for (const ActorSpec& slot : pipeline.slots)
      names.push_back(slot.name);
    return record(pipeline, std::make_unique<InProcessHost>(std::move(names), SimulatedActors()));
  }

  static Result<Whatif> ask(const fs::path& run, std::vector<std::string> sets) {
    return whatif({run, std::move(sets), {}});
  }

  fs::path folder_;

 private:
  fs::path record(const ResolvedPipeline& pipeline, std::unique_ptr<ActorHost> host) {
    const fs::path run = folder_ / fmt::format("run-{}", ++runs_);
    EXPECT_TRUE(make_folder(run));
    EXPECT_TRUE(write_file_atomically(run / "config.yaml", to_yaml(pipeline.config)));
    VirtualOptions options;
    options.pipeline = pipeline;
    options.log = run / "events.log";
    const auto figures = simulate_on(std::move(options), std::move(host));
    EXPECT_TRUE(figures) << (figures ? "" : figures.error().context);
    return run;
  }
  int runs_ = 0;
};

TEST_F(Recorded, ALocalRunIsRescheduledAsRecorded) {
  const auto answer = ask(local(local_pipeline()), {"staleness.bound=2"});
  ASSERT_TRUE(answer) << answer.error().context;
  EXPECT_LT(std::abs(answer->error), 0.03);
  EXPECT_NEAR(answer->unchanged.busy, answer->recorded.busy, 0.02);
  EXPECT_EQ(answer->recorded_lengths, 40 * 8 * 4);
}

TEST_F(Recorded, TheCounterfactualMatchesARealRun) {
  PipelineConfig other = local_pipeline();
  const auto answer = ask(local(other), {"staleness.bound=2"});
  other.staleness.bound = 2;
  const fs::path run = local(other);
  const auto really = figures_of_log(run / "events.log", resolve(other).value());
  ASSERT_TRUE(answer && really);
  EXPECT_NEAR(answer->expected.trained_per_s / really->whole.trained_per_s, 1, 0.05);
  EXPECT_NEAR(answer->expected.staleness_mean, really->whole.staleness_mean, 0.1);
  EXPECT_EQ(answer->verdict, Whatif::Verdict::Wins);
  EXPECT_NEAR(
      answer->regret_per_s, answer->expected.trained_per_s - answer->recorded.trained_per_s, 1e-6);
}

TEST_F(Recorded, NoChangeGivesNoRegret) {
  const auto answer = ask(local(local_pipeline()), {"staleness.bound=0"});
  ASSERT_TRUE(answer) << answer.error().context;
  EXPECT_NEAR(answer->regret_per_s, 0, 1e-6);
  EXPECT_EQ(answer->verdict, Whatif::Verdict::Same);
}

TEST_F(Recorded, ASimulatedRunIsRescheduledExactly) {
  PipelineConfig config = testing::small_pipeline();
  const fs::path run = simulated(config);
  const auto answer = ask(run, {"staleness.bound=3", "rollout.concurrency=32"});
  ASSERT_TRUE(answer) << answer.error().context;
  EXPECT_EQ(answer->error, 0);
  config.staleness.bound = 3;
  config.rollout.concurrency = 32;
  const auto really = simulate(config);
  ASSERT_TRUE(really);
  EXPECT_EQ(answer->counterfactual.trained_per_s, really->whole.trained_per_s);
  EXPECT_EQ(answer->expected.trained_per_s, really->whole.trained_per_s);
}

TEST_F(Recorded, ASimulatedRunWithEvaluationsIsRescheduledExactly) {
  // Evaluations have two responses per problem, training groups have another number.
  PipelineConfig config = testing::small_pipeline();
  config.simulation.response.sibling_correlation = 0.5;
  config.evaluation.every = 4;
  config.evaluation.problems = 5;
  config.evaluation.samples = 2;
  config.evaluation.greedy = false;
  ASSERT_NE(config.algorithm.responses_per_group, config.evaluation.samples);
  const auto answer = ask(simulated(config), {"staleness.bound=3"});
  ASSERT_TRUE(answer) << answer.error().context;
  EXPECT_EQ(answer->error, 0);
}

TEST_F(Recorded, ALocalRunWithEvaluationsIsRescheduledAsRecorded) {
  PipelineConfig config = local_pipeline();
  config.evaluation.every = 4;
  config.evaluation.problems = 32;
  const fs::path run = local(config);
  const RunRecord record = read_run_record(run).value();
  for (const auto& [response, tokens] : record.finished())
    EXPECT_EQ(tokens, 2 + static_cast<std::int64_t>(response.value() % 5)) << response.value();
  const auto answer = ask(run, {"staleness.bound=2"});
  ASSERT_TRUE(answer) << answer.error().context;
  EXPECT_LT(std::abs(answer->error), 0.03);
  EXPECT_EQ(answer->recorded_lengths, 40 * 8 * 4 + 32);
}

TEST_F(Recorded, TheCostModelKnowsTheEffectOfSettingsOfASimulatedRun) {
  PipelineConfig config = testing::small_pipeline();
  const fs::path run = simulated(config);
  for (const char* set : {"simulation.framework=verl",
                          "simulation.tools={turn: {mean: 50}}",
                          "simulation.tensors.per_token=1MB",
                          "simulation.reference.model=qwen2.5-7b",
                          "simulation.checkpoint.bandwidth=10GB/s"}) {
    const auto answer = ask(run, {set});
    ASSERT_TRUE(answer) << set << ": " << answer.error().context;
    EXPECT_EQ(answer->error, 0) << set;
    EXPECT_LT(answer->regret_per_s, 0) << set;
  }
  const auto lengths = ask(run, {"simulation.response.mean=20"});
  ASSERT_FALSE(lengths);
  EXPECT_NE(lengths.error().context.find("simulation.response.mean"), std::string::npos);
}

TEST_F(Recorded, LengthsFromAnotherProgramVersionAreRefused) {
  PipelineConfig config = testing::small_pipeline();
  const fs::path run = simulated(config);
  config.seed = 99;
  ASSERT_TRUE(write_file_atomically(run / "config.yaml", to_yaml(config)));
  const auto refused = ask(run, {"staleness.bound=3"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("tokens in the log"), std::string::npos);
}

TEST_F(Recorded, KeysWithUnknownEffectAreRefusedByName) {
  const fs::path run = local(local_pipeline());
  const auto reason = [&](const char* set) {
    const auto refused = ask(run, {set});
    return refused ? std::string("answered") : refused.error().context;
  };
  EXPECT_NE(reason("sampling.temperature=0.5").find("sampling.temperature"), std::string::npos);
  EXPECT_NE(reason("model.layers=8").find("model.layers"), std::string::npos);
  EXPECT_NE(reason("stalenes.bound=1").find("`staleness`"), std::string::npos);
  EXPECT_NE(reason("placement.mode=colocated").find("2 threads"), std::string::npos);
}

/// Two sources of problems, each with a teacher of its own.
PipelineConfig with_teachers(PipelineConfig c) {
  c.task.sources["one"].teacher = "a";
  c.task.sources["two"].teacher = "b";
  c.reference.teachers = {{"a", {}}, {"b", {}}};
  return c;
}

TEST_F(Recorded, AnotherNumberOfActorsOfATeacherIsRescheduled) {
  PipelineConfig config = with_teachers(testing::small_pipeline());
  config.placement.cards = 12;
  config.placement.reference_cards = 6;  // three for each teacher
  const fs::path run = simulated(config);
  config.reference.teachers["a"].replicas = 2;  // and then two for each of its actors
  const auto really = simulate(config);
  ASSERT_TRUE(really);
  for (const char* set :
       {"reference.teachers.a.replicas=2", "reference.teachers={a: {replicas: 2}}"}) {
    const auto answer = ask(run, {set});
    ASSERT_TRUE(answer) << answer.error().context;
    EXPECT_EQ(answer->error, 0);
    EXPECT_EQ(answer->counterfactual.trained_per_s, really->whole.trained_per_s);
  }
  const auto uneven = ask(run, {"reference.teachers.a.replicas=3"});
  ASSERT_FALSE(uneven);
  EXPECT_NE(uneven.error().context.find("reference.teachers.a.replicas: the actors of all teachers "
                                        "together must divide the 6 cards"),
            std::string::npos)
      << uneven.error().context;
}

TEST_F(Recorded, TheKeysOfASectionThatIsSetAreNamed) {
  const fs::path run = simulated(testing::small_pipeline());
  EXPECT_TRUE(ask(run, {"rollout={concurrency: 32}"}));
  const auto refused = ask(run, {"sampling={temperature: 0.5}"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context.find("sampling.temperature: its effect"), 0U)
      << refused.error().context;
}

TEST_F(Recorded, ASectionThatIsRemovedBesideAnotherChangeIsRefusedByName) {
  const fs::path run = simulated(testing::small_pipeline());
  const auto refused = ask(run, {"~sampling", "staleness.bound=3"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context.find("~sampling: its effect"), 0U) << refused.error().context;
}

TEST_F(Recorded, KeysOfTheEngineOfATeacherAreRefused) {
  PipelineConfig config = with_teachers(testing::small_pipeline());
  config.placement.cards = 12;
  config.placement.reference_cards = 6;
  const fs::path run = simulated(config);
  const auto refused = ask(run, {"reference.teachers.a.engine.with.replicas=3"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("reference.teachers.a.engine"), std::string::npos)
      << refused.error().context;
}

TEST_F(Recorded, AnIncompleteRunFolderIsRefused) {
  const auto none = ask(folder_ / "nowhere", {"steps=3"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().context.find("not a run folder"), std::string::npos);
  const fs::path run = local(local_pipeline());
  const auto log = read_file(run / "events.log");
  ASSERT_TRUE(log);
  ASSERT_TRUE(write_file_atomically(run / "events.log", log->substr(0, log->size() / 2)));
  const auto interrupted = ask(run, {"steps=3"});
  ASSERT_FALSE(interrupted);
  EXPECT_NE(interrupted.error().context.find("interrupted"), std::string::npos);
}

TEST_F(Recorded, TheCommandSavesItsResultForTheDashboardOnRequest) {
  const fs::path run = simulated(testing::small_pipeline());
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_whatif({run.string(), {"staleness.bound=3"}, "", false}, out, err), 0);
  EXPECT_TRUE(read_predictions(run).empty());
  ASSERT_EQ(cli::run_whatif({run.string(), {"staleness.bound=3"}, "", false, true}, out, err), 0)
      << err.str();
  const auto answer = ask(run, {"staleness.bound=3"});
  const auto kept = read_predictions(run);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].change, "staleness.bound=3");
  EXPECT_EQ(kept[0].error, 0);
  EXPECT_NEAR(kept[0].gain, answer->regret_per_s / answer->recorded.trained_per_s, 1e-9);
}

TEST_F(Recorded, TheCommandPrintsRecordedFirstAndTheRegretLast) {
  const fs::path run = local(local_pipeline());
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_whatif({run.string(), {"staleness.bound=1"}, "", false}, out, err), 0);
  EXPECT_LT(out.str().find("recorded"), out.str().find("unchanged"));
  EXPECT_LT(out.str().find("unchanged"), out.str().find("regret"));
  std::ostringstream json;
  EXPECT_EQ(cli::run_whatif({run.string(), {"staleness.bound=1"}, "", true}, json, err), 0);
  EXPECT_NE(json.str().find("\"regret_per_s\""), std::string::npos);
  EXPECT_EQ(cli::run_whatif({run.string(), {}, "", false}, out, err), 2);
  EXPECT_NE(err.str().find("--set"), std::string::npos);
}

}  // namespace
}  // namespace temper::study
