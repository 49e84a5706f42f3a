#include "study/search/tune.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "cli/study/constants_note.hpp"
#include "cli/study/tune_command.hpp"
#include "core/files.hpp"
#include "core/text/table.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "study/search/tune_judge.hpp"
#include "study/search/tune_report.hpp"
#include "study/search/tune_screen.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

namespace temper::study {

using namespace orchestrator;
namespace {

namespace fs = std::filesystem;
using temper::testing::small_pipeline;

/// A small pipeline in a file, tuned with few runs.
class Tune : public ::testing::Test {
 protected:
  void SetUp() override {
    configure(small_pipeline());
    options_.runs = 12;
    options_.response_weight = 1;
    options_.finalists = 2;
    options_.final_updates = 3;
    options_.etas = {0, 1};
  }

  void configure(const PipelineConfig& config) {
    options_.config = ConfigFile::read(write("small.yaml", to_yaml(config))).value();
  }
  fs::path write(const std::string& name, const std::string& text) {
    const fs::path file = folder_ / name;
    EXPECT_TRUE(write_file_atomically(file, text));
    return file;
  }
  TuneResult tuned() {
    auto result = tune(options_);
    EXPECT_TRUE(result) << result.error().context;
    return *std::move(result);
  }
  static std::string csv(const TuneResult& t) {
    const std::vector<TuneRow> rows = tune_rows(t);
    return to_csv(std::span<const TuneRow>(rows));
  }
  std::string error() {
    const auto result = tune(options_);
    EXPECT_FALSE(result);
    return result ? "" : result.error().context;
  }

  const test::TemporaryFolder folder_;
  TuneOptions options_;
};

TEST_F(Tune, TheAnswerIsNoWorseThanTheGivenConfiguration) {
  const TuneResult t = tuned();
  EXPECT_GE(*t.tried[t.fastest].row.tokens_per_s, *t.tried[t.given].row.tokens_per_s);
  EXPECT_GE(*t.tried[t.best].row.tokens_per_s,
            (1 - t.error) * *t.tried[t.fastest].row.tokens_per_s);
  EXPECT_EQ(t.tried[t.given].row.found_by, "as given");
  EXPECT_LE(t.runs, 12U);
  EXPECT_GT(t.fitting, 0U);
  EXPECT_GE(t.screened, t.fitting);
}

TEST_F(Tune, ATeacherOfAnotherShapeGetsALayoutThatFits) {
  PipelineConfig given = small_pipeline();
  given.simulation.reference.model = "qwen3-30b-a3b";  // 61 GB: more than a device holds.
  given.placement.cards = 16;
  given.placement.reference_cards = 4;
  given.simulation.reference.ep = 8;
  options_.config = ConfigFile::read(write("teacher.yaml", to_yaml(given))).value();
  const TuneResult t = tuned();
  std::size_t fitting = 0;
  for (const Candidate& c : t.tried) {
    if (!c.row.reason.empty())
      continue;
    ++fitting;
    EXPECT_EQ(c.config.simulation.reference.model, "qwen3-30b-a3b");
    EXPECT_TRUE(validate(c.config).empty()) << to_yaml(c.config.simulation.reference);
  }
  EXPECT_GT(fitting, 1U);
  EXPECT_GE(*t.tried[t.fastest].row.tokens_per_s, *t.tried[t.given].row.tokens_per_s);
}

TEST_F(Tune, ARunOfTheAnswerReproducesItsFigures) {
  const TuneResult t = tuned();
  const Candidate& best = t.tried[t.best];
  PipelineConfig again = read_yaml<PipelineConfig>("tuned.yaml", to_yaml(best.config), {}).value;
  again.steps = steps_for(options_.final_updates, static_cast<std::int32_t>(again.staleness.bound));
  EXPECT_EQ(simulate(again)->steady.sustained_per_s, *best.row.tokens_per_s);
  EXPECT_EQ(best.config.steps, small_pipeline().steps);  // the user's steps
}

TEST_F(Tune, TheNumberOfThreadsDoesNotChangeTheAnswer) {
  const TuneResult one = tuned();
  options_.threads = 3;
  const TuneResult three = tuned();
  EXPECT_EQ(csv(one), csv(three));
}

TEST_F(Tune, IsWithinOnePercentOfExhaustiveSearch) {
  // Separate cards at bound 1: every point that fits runs like the answer.
  PipelineConfig like = small_pipeline();
  like.placement.cards = 4;
  like.placement.rollout_cards = 2;
  configure(like);
  options_.modes = {PlacementMode::Separate};
  options_.etas = {1};
  options_.runs = 40;
  const TuneResult t = tuned();
  auto screen = Screen::create({like, PlacementMode::Separate, {1}, {}, "", {}}).value();
  const auto all =
      screen.run([](const Rates& r) { return std::optional(r.sustained_per_s); }, 1'000'000);
  ASSERT_GT(all.size(), 40U);
  double best = 0;
  for (const ScreenPoint& point : all) {
    PipelineConfig config = point.config;
    config.steps = steps_for(3, 1);
    const auto figures = simulate(config);
    if (figures)
      best = std::max(best, figures->steady.sustained_per_s);
  }
  EXPECT_GE(*t.tried[t.fastest].row.tokens_per_s, 0.99 * best);
}

TEST_F(Tune, RunsEveryPointIfTheRunsSuffice) {
  options_.modes = {PlacementMode::Separate};
  options_.etas = {1};
  options_.only = {{"tp", {2}}, {"slots", {16, 32}}, {"reference_cards", {1}}};
  options_.runs = 1000;
  const TuneResult t = tuned();
  EXPECT_LE(t.runs, t.fitting);  // many points are equivalent
  for (const Candidate& c : t.tried)
    EXPECT_TRUE(c.row.found_by == "screen" || c.row.found_by == "as given") << c.row.found_by;
}

TEST_F(Tune, ARestrictedAxisHasOnlyItsValues) {
  options_.only = {{"tp", {1, 2}}, {"engine_cards", {2}}};
  for (const Candidate& c : tuned().tried) {
    if (c.row.found_by == "as given")
      continue;
    EXPECT_LE(c.config.simulation.rollout.tp, 2);
    EXPECT_EQ(c.row.rollout_cards, 2 * c.row.engines);
  }
}

TEST_F(Tune, UnknownAxesAndValuesAreRefused) {
  options_.only = {{"cards", {2}}};
  EXPECT_EQ(error().find("--only: cards: no such axis; known axes: engine_cards, tp, "), 0U)
      << error();
  options_.only = {{"tp", {3}}};
  EXPECT_EQ(error().find("--only: tp=3: not a value of this axis; known values: 1, 2"), 0U)
      << error();
}

TEST_F(Tune, TotalTimeIsAnObjective) {
  options_.objective = TuneObjective::Steps;
  const TuneResult t = tuned();
  const TuneRow& best = t.tried[t.best].row;
  EXPECT_NEAR(*best.objective, 8 * *best.seconds_per_update, 1e-6);
  for (const Candidate& c : t.tried) {
    if (c.row.objective && c.row.reason.empty()) {
      EXPECT_GE(*c.row.objective, *t.tried[t.fastest].row.objective);
    }
  }
}

TEST_F(Tune, CostlyStalenessFavorsFresherBatches) {
  // Staleness 1 needs ten times the updates, which no throughput outweighs.
  options_.objective = TuneObjective::Reward;
  options_.curve = RewardCurve{{{0, 100}, {1, 1000}}};
  const TuneResult t = tuned();
  EXPECT_EQ(t.tried[t.best].row.eta, 0);
}

TEST_F(Tune, ReportsTheCostOfStaleness) {
  options_.curve = RewardCurve{{{0, 100}, {1, 150}}, "addition.csv"};
  const TuneResult t = tuned();
  const TuneRow& best = t.tried[t.best].row;
  // Mean staleness s takes 100 + 50 s updates.
  const double updates = 100 + 50 * *best.staleness;
  EXPECT_NEAR(*best.hours_to_reward, updates * *best.seconds_per_update / 3600, 1e-9);
  const std::string text = tune_text(t);
  EXPECT_NE(text.find("by addition.csv x"), std::string::npos) << text;
  options_.curve.reset();
  EXPECT_NE(tune_text(tuned()).find("its cost in learning is not included"), std::string::npos);
}

/// Chooses among plans with these tokens/s and mean staleness; the first is the given one.
TuneResult chosen(const std::vector<std::pair<double, double>>& plans, double error) {
  const TuneOptions options;
  TuneResult t;
  t.error = error;
  for (const auto& [rate, age] : plans) {
    Candidate c;
    c.row.found_by = t.tried.empty() ? "as given" : "screen";
    c.row.mode = "separate";
    c.row.tokens_per_s = c.row.objective = rate;
    c.row.seconds_per_update = 1000 / rate;
    c.row.staleness = c.row.eta = age;
    t.tried.push_back(std::move(c));
  }
  EXPECT_TRUE(TuneJudge(options).choose(t));
  return t;
}

TEST(TuneTies, TheLeastStaleTieIsAdvised) {
  const TuneResult t = chosen({{68.8, 2}, {69.0, 4}, {68.5, 1}, {60, 0}}, 0.02);
  EXPECT_EQ(*t.tried[t.fastest].row.tokens_per_s, 69.0);
  EXPECT_EQ(*t.tried[t.best].row.tokens_per_s, 68.5);  // 0.7 % behind; the one at 0 is 13 % behind
  EXPECT_EQ(t.ties.size(), 3U);
  EXPECT_EQ(t.tried[t.best].row.verdict, "advised");
  EXPECT_EQ(t.tried[t.fastest].row.verdict, "tie");
  const std::string text = tune_text(t);
  EXPECT_NE(text.find("a tie: 3 plans are within 2.0 % of the fastest"), std::string::npos) << text;
}

TEST(TuneTies, APlanFasterByMoreThanTheErrorIsTheBest) {
  const TuneResult t = chosen({{68.8, 2}, {72.0, 4}, {68.5, 1}}, 0.02);
  EXPECT_EQ(*t.tried[t.best].row.tokens_per_s, 72.0);
  EXPECT_EQ(t.best, t.fastest);
  EXPECT_EQ(tune_text(t).find("a tie"), std::string::npos);
}

TEST(TuneTies, OfEquallyStalePlansTheFastestIsAdvised) {
  const TuneResult t = chosen({{68.8, 1.99}, {69.0, 2}, {68.5, 2.01}}, 0.02);
  EXPECT_EQ(t.best, t.fastest);
}

TEST_F(Tune, TheErrorComesFromAnotherDrawOfLengths) {
  const TuneResult t = tuned();
  EXPECT_GT(t.error, 0);
  EXPECT_LT(t.error, 0.5);
  // All responses have equal lengths, so nothing differs between draws.
  PipelineConfig even = small_pipeline();
  even.simulation.response.kind = actors::LengthKind::Constant;
  even.simulation.reward.p99_over_median = 1;
  configure(even);
  EXPECT_LT(tuned().error, t.error);
}

TEST_F(Tune, ARewardObjectiveNeedsACurve) {
  options_.objective = TuneObjective::Reward;
  EXPECT_NE(error().find("--curve"), std::string::npos);
}

TEST_F(Tune, NoBoundWithinTheLimitNamesTheNearest) {
  options_.etas = {2, 4};
  options_.constraints.max_staleness = 1;
  EXPECT_EQ(
      error(),
      "--eta 2,4: no bound is within --max-staleness 1; the smallest is 1 above it; nearest: --eta "
      "1");
}

TEST_F(Tune, AnEmptyListOfBoundsIsRefused) {
  options_.etas = {};
  EXPECT_NE(error().find("--eta: expected at least one bound"), std::string::npos);
}

TEST_F(Tune, AnUnreachableRateNamesTheNearestPlan) {
  options_.constraints.min_tokens_per_s = 1e9;
  const std::string text = error();
  EXPECT_NE(text.find("no plan meets the constraints; the nearest, "), std::string::npos) << text;
  EXPECT_NE(text.find("below --min-tokens-per-s"), std::string::npos) << text;
}

TEST_F(Tune, AnImpossibleMemoryLimitNamesTheNearestPlan) {
  options_.constraints.max_memory = Bytes(1'000'000'000);
  const std::string text = error();
  EXPECT_NE(text.find("no placement fits"), std::string::npos) << text;
  EXPECT_NE(text.find("GB above --max-memory"), std::string::npos) << text;
}

TEST_F(Tune, AMemoryLimitIsRespected) {
  options_.constraints.max_memory = Bytes(30'000'000'000);
  const TuneResult t = tuned();
  const PipelineConfig& best = t.tried[t.best].config;
  const auto phases = actors::memory_phases(simulated_placement(resolve(best).value()));
  ASSERT_TRUE(phases);
  for (const actors::PhaseLedger& phase : *phases)
    EXPECT_LE(phase.device(), 30e9) << phase.group << " " << phase.phase;
}

TEST_F(Tune, VariedKeysAreSearched) {
  options_.vary = {*parse_axis("--vary", "algorithm.groups_per_update=8,16")};
  const TuneResult t = tuned();
  std::set<std::string> varied;
  for (const Candidate& c : t.tried)
    varied.insert(c.row.vary);
  EXPECT_TRUE(varied.contains("algorithm.groups_per_update=8"));
  EXPECT_TRUE(varied.contains("algorithm.groups_per_update=16"));
}

TEST_F(Tune, ABatchIsVariedOnlyForThroughput) {
  options_.vary = {*parse_axis("--vary", "algorithm.groups_per_update=8,16")};
  options_.objective = TuneObjective::Steps;
  EXPECT_EQ(error(),
            "--vary algorithm.groups_per_update: only tokens/s are comparable between batches; use "
            "--objective throughput, or tune each batch alone");
  options_.vary = {*parse_axis("--vary", "rollout.concurrency=16,32")};
  tuned();
}

TEST_F(Tune, StoppingEarlyDecidesOnTheBestSoFar) {
  int asked = 0;
  options_.stop = [&] { return ++asked > 1; };
  const TuneResult t = tuned();
  EXPECT_TRUE(t.stopped);
  EXPECT_TRUE(t.tried[t.best].row.tokens_per_s);
  EXPECT_NE(tune_text(t).find("stopped early"), std::string::npos);
}

TEST_F(Tune, TheCommandWritesItsResultAndDoesNotOverwriteIt) {
  cli::TuneOptions command;
  command.config = (folder_ / "small.yaml").string();
  command.modes = {"separate"};
  command.etas = {"1"};
  command.effort = 2;
  command.steps = 1;
  command.out = (folder_ / "out").string();
  std::ostringstream out, err;
  ASSERT_EQ(cli::run_tune(command, out, err), 0) << err.str();
  EXPECT_NE(out.str().find("as given"), std::string::npos);
  EXPECT_NE(err.str().find("full runs"), std::string::npos);
  for (const char* name : {"tuned.yaml", "tune.csv", "tune.svg", "tune.md"})
    EXPECT_TRUE(fs::exists(fs::path(command.out) / name)) << name;
  EXPECT_EQ(cli::run_tune(command, out, err), 2);
  EXPECT_NE(err.str().find("already exists; choose another folder with --out"), std::string::npos);
}

TEST_F(Tune, RecordedLengthsApplyToThisMachineOnly) {
  options_.lengths.emplace();
  EXPECT_EQ(error().find("--lengths applies to `hardware: local`"), 0U);
}

TEST_F(Tune, TheCommandSuggestsTheNearestMode) {
  cli::TuneOptions command;
  command.config = (folder_ / "small.yaml").string();
  command.modes = {"fussed"};
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_tune(command, out, err), 2);
  EXPECT_NE(err.str().find("--modes fussed: did you mean `fused`?"), std::string::npos);
}

TEST(ToolsNote, IsOnlyForSimulatedToolCalls) {
  PipelineConfig config = small_pipeline();
  EXPECT_EQ(cli::tools_note(config), "");
  config.simulation.tools.emplace();
  EXPECT_EQ(cli::tools_note(config),
            "the plan leaves out the tool calls of `simulation.tools`; simulated runs have them\n");
}

class Curve : public Tune {};

TEST_F(Curve, IsTheMeanOverSeedsWithLinearInterpolation) {
  const auto curve = read_reward_curve(write("sweep.csv",
                                             "staleness.bound,staleness_mean,steps_to_target\n"
                                             "0,0,70\n0,0,80\n2,2,150\n2,2,150\n"));
  ASSERT_TRUE(curve) << curve.error().context;
  EXPECT_EQ(*curve->updates(0), 75);
  EXPECT_EQ(*curve->updates(1), 112.5);  // half way from 75 to 150
  EXPECT_EQ(*curve->updates(2), 150);
  EXPECT_FALSE(curve->updates(2.5));
}

TEST_F(Curve, ReachesTheBoundOfItsStalestRuns) {
  // The first updates of a run are fresher than the bound; the steady state is not.
  const auto curve = read_reward_curve(
      write("sweep.csv", "staleness.bound,staleness_mean,steps_to_target\n0,0,70\n4,3.9,200\n"));
  ASSERT_TRUE(curve) << curve.error().context;
  EXPECT_EQ(*curve->updates(4), 200);
  EXPECT_FALSE(curve->updates(4.5));
}

TEST_F(Curve, ABoundThatASeedMissedIsNoPoint) {
  const auto curve = read_reward_curve(write("sweep.csv",
                                             "staleness.bound,staleness_mean,steps_to_target\n"
                                             "0,0,70\n4,4,300\n4,4,\n"));
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->most_staleness(), 0);
}

TEST_F(Curve, AppliesToTrainedPoliciesOnItsTask) {
  PipelineConfig config;
  config.policy = actors::PolicyKind::Torch;
  const fs::path curves = write("addition_to_0.8.csv", "").parent_path();
  EXPECT_EQ(curve_of(config, curves), curves / "addition_to_0.8.csv");
  EXPECT_EQ(curves_in(curves).size(), 1U);
  config.task.kind = actors::TaskKind::Jsonl;
  EXPECT_FALSE(curve_of(config, curves));
  config = PipelineConfig();
  config.policy = actors::PolicyKind::Synthetic;
  EXPECT_FALSE(curve_of(config, curves));
  EXPECT_TRUE(curves_in(curves / "none").empty());
}

TEST_F(Curve, OtherTablesAreRefused) {
  const auto curve = read_reward_curve(write("other.csv", "staleness.bound,tokens\n0,1\n"));
  ASSERT_FALSE(curve);
  EXPECT_NE(curve.error().context.find("no column `staleness_mean`"), std::string::npos);
}

}  // namespace
}  // namespace temper::study
