// Layout searches and the comparison of deployments on a small model. TEMPER_UPDATE_GOLDEN=1
// rewrites tests/golden/ladder.
#include "cli/study/ladder_command.hpp"
#include "core/files.hpp"
#include "core/text/table.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "study/plan/config_plan.hpp"
#include "study/search/deployments_report.hpp"
#include "study/simulate/layouts.hpp"
#include "tests/support/small_pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace temper::study {

using namespace orchestrator;
namespace {

using temper::testing::small_pipeline;

DeploymentOptions small_ladder(std::vector<std::string> ids) {
  DeploymentOptions options;
  options.config = small_pipeline();
  options.spreads = {{256, Tokens(1024), 4}};
  for (const Deployment& deployment : known_deployments()) {
    if (std::ranges::find(ids, deployment.id) != ids.end())
      options.deployments.push_back(deployment);
  }
  options.runs = 6;
  options.steady_updates = 3;
  options.finalists = 2;
  return options;
}

TEST(Space, EveryPointIsAPlacementOfWholeEnginesOrNone) {
  const ResolvedPipeline like = resolve(small_pipeline()).value();
  for (const auto& [mode, name] : EnumNames<PlacementMode>::value) {
    SCOPED_TRACE(name);
    const Space space(like.config, mode, *like.simulation);
    int placements = 0;
    Space::Point point(space.axes().size());
    const auto next = [&] {
      for (std::size_t axis = 0; axis < point.size(); ++axis) {
        if (++point[axis] < space.axes()[axis].values.size())
          return true;
        point[axis] = 0;
      }
      return false;
    };
    do {
      const auto config = space.at(point);
      if (!config)
        continue;
      ++placements;
      const PlacementConfig cards = resolve_placement(*config);
      ASSERT_EQ(cards.mode, mode);
      ASSERT_EQ(cards.rollout.size() % static_cast<std::size_t>(config->rollout.replicas), 0U);
      ASSERT_FALSE(cards.trainer.empty());
      // At most the responses that the bound allows: 2 x 8 x 4.
      ASSERT_LE(config->rollout.concurrency * config->rollout.replicas,
                64 + 4 * config->rollout.replicas);
    } while (next());
    EXPECT_GT(placements, 50);
  }
}

TEST(Layouts, HaveTheFastestUpdateAndTheLargestCacheThatFit) {
  auto chooser = LayoutChooser::create(resolve(small_pipeline()).value());
  ASSERT_TRUE(chooser) << chooser.error().context;
  const auto chosen = chooser->complete(small_pipeline(), resolve_placement(small_pipeline()));
  ASSERT_TRUE(chosen) << chosen.error().context;
  EXPECT_TRUE(validate(*chosen).empty());
  PipelineConfig larger = *chosen;
  larger.simulation.rollout.kv_share += 0.05;
  EXPECT_FALSE(validate(larger).empty());
  PipelineConfig other = *chosen;
  other.simulation.trainer.pp *= 3;  // 6 devices in all
  ASSERT_TRUE(validate(other).empty());
  const auto fast = simulate(*chosen), slow = simulate(other);
  ASSERT_TRUE(fast && slow);
  EXPECT_LT(fast->whole.states.at(actors::CardState::Train) * fast->whole.seconds,
            slow->whole.states.at(actors::CardState::Train) * slow->whole.seconds);
}

TEST(Layouts, OfTheTrainerMatchThePlanForTheSameCards) {
  for (const PlacementMode mode : {PlacementMode::Separate, PlacementMode::Fused}) {
    PipelineConfig config = small_pipeline();
    config.placement.mode = mode;
    auto chooser = LayoutChooser::create(resolve(config).value());
    ASSERT_TRUE(chooser) << chooser.error().context;
    const auto chosen = chooser->complete(config, resolve_placement(config));
    ASSERT_TRUE(chosen) << chosen.error().context;
    const auto plan = plan_config(config);
    ASSERT_TRUE(plan) << plan.error().context;
    EXPECT_EQ(chosen->simulation.trainer, plan->config.simulation.trainer) << name_of(mode);
  }
}

TEST(Layouts, ThatDoNotFitAreAMemoryError) {
  PipelineConfig config = small_pipeline();
  config.simulation.model = "deepseek-v3";
  auto chooser = LayoutChooser::create(resolve(config).value());
  ASSERT_TRUE(chooser);
  const auto chosen = chooser->complete(config, resolve_placement(config));
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::OutOfMemory);
  EXPECT_EQ(chosen.error().context, "no trainer layout fits 3 cards");
}

TEST(DeploymentComparison, UsesItsRunsAndIsTheSameOnAnyNumberOfThreads) {
  DeploymentOptions options = small_ladder({"separate", "fusion-eta1"});
  const auto one = compare_deployments(options);
  options.threads = 3;
  const auto three = compare_deployments(options);
  ASSERT_TRUE(one && three);
  ASSERT_EQ(one->cells.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(one->cells[i].tuned) << one->cells[i].reason;
    EXPECT_EQ(one->cells[i].tuned->runs, 6U);
    EXPECT_EQ(to_yaml(one->cells[i].tuned->config), to_yaml(three->cells[i].tuned->config));
  }
  EXPECT_EQ(deployments_text(*one), deployments_text(*three));
}

TEST(DeploymentComparison, TheWinnersConfigurationReproducesItsFigures) {
  const auto comparison = compare_deployments(small_ladder({"one-step-off"}));
  ASSERT_TRUE(comparison && comparison->cells[0].tuned);
  const TunedDeployment& tuned = *comparison->cells[0].tuned;
  const auto again = simulate(tuned.config);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->steady.sustained_per_s, tuned.figures.steady.sustained_per_s);
  EXPECT_EQ(tuned.figures.steady.updates, 3U);
  EXPECT_EQ(tuned.config.staleness.bound, 1);
}

TEST(DeploymentComparison, MoreRunsFindNothingWorse) {
  DeploymentOptions options = small_ladder({"separate"});
  options.finalists = 1;
  const auto few = compare_deployments(options);
  options.runs = 24;
  const auto many = compare_deployments(options);
  ASSERT_TRUE(few && many);
  EXPECT_GE(many->cells[0].tuned->figures.steady.sustained_per_s,
            0.98 * few->cells[0].tuned->figures.steady.sustained_per_s);
}

TEST(DeploymentComparison, TunesEveryDeploymentWithAndWithoutTheMechanismsThatItsPlacementAllows) {
  const auto comparison =
      compare_deployments(small_ladder({"separate", "colocated", "fusion-eta1"}));
  ASSERT_TRUE(comparison);
  for (const DeploymentCell& cell : comparison->cells) {
    SCOPED_TRACE(cell.deployment);
    ASSERT_TRUE(cell.tuned && cell.with_mechanisms) << cell.reason << cell.mechanisms_reason;
    EXPECT_EQ(cell.tuned->runs, cell.with_mechanisms->runs);
    EXPECT_FALSE(cell.tuned->config.stragglers.prepare);
    const PipelineConfig& c = cell.with_mechanisms->config;
    EXPECT_TRUE(c.stragglers.prepare);
    const bool turns = traits_of(c.placement.mode).alternates();
    EXPECT_EQ(c.placement.switching == Switching::OneByOne, turns);
    const auto again = simulate(c);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->steady.sustained_per_s, cell.with_mechanisms->figures.steady.sustained_per_s);
  }
}

TEST(DeploymentComparison, ADeploymentThatCannotRunKeepsItsReason) {
  DeploymentOptions options = small_ladder({"separate", "colocated"});
  options.config.simulation.model = "deepseek-v3";
  const auto comparison = compare_deployments(options);
  ASSERT_TRUE(comparison);
  for (const DeploymentCell& cell : comparison->cells) {
    EXPECT_FALSE(cell.tuned);
    EXPECT_TRUE(cell.reason.starts_with("no placement fits: ")) << cell.reason;
    EXPECT_NE(cell.reason.find("; most frequent reason: no trainer layout fits"), std::string::npos)
        << cell.reason;
  }
  EXPECT_NE(
      deployments_text(*comparison).find("not run\n  separate at 256:1024:4: no placement fits"),
      std::string::npos);
}

TEST(DeploymentComparison, OfASmallModelMatchesTheGoldenFile) {
  const auto comparison =
      compare_deployments(small_ladder({"separate", "colocated", "one-step-off"}));
  ASSERT_TRUE(comparison);
  const std::string text = deployments_text(*comparison);
  const auto path = std::filesystem::path(TEMPER_SOURCE_DIR) / "tests/golden/ladder/small.txt";
  if (std::getenv("TEMPER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, text));
    return;
  }
  EXPECT_EQ(text, read_file(path).value()) << path << " is stale; TEMPER_UPDATE_GOLDEN=1";
}

TEST(DeploymentComparison, ComparesEveryDeploymentAtEveryBatch) {
  DeploymentOptions options = small_ladder({"separate", "colocated", "fusion"});
  options.batches = {4, 8};
  const auto comparison = compare_deployments(options);
  ASSERT_TRUE(comparison);
  ASSERT_EQ(comparison->cells.size(), 6U);
  for (const DeploymentCell& cell : comparison->cells)
    EXPECT_EQ(cell.tuned.value().config.algorithm.groups_per_update, cell.groups);
  const std::vector<DeploymentRow> rows = deployment_rows(*comparison);
  EXPECT_EQ(rows[2].groups_per_update, 4);
  EXPECT_EQ(rows[5].groups_per_update, 8);
  // Each row is relative to the baselines of its own batch.
  EXPECT_NEAR(rows[5].of_separate, rows[5].tokens_per_s / rows[3].tokens_per_s, 1e-3);
  EXPECT_NEAR(rows[5].of_colocated, rows[5].tokens_per_s / rows[4].tokens_per_s, 1e-3);
  const std::string text = deployments_text(*comparison);
  EXPECT_NE(text.find("batch 4 x 4, 8 x 4"), std::string::npos) << text;
  EXPECT_NE(text.find("| 4 x 4, 256:1024:4 | 8 x 4, 256:1024:4 |"), std::string::npos) << text;
  EXPECT_NE(text.find("relative to `synchronous, co-located`"), std::string::npos) << text;
}

TEST(DeploymentComparison, StatesTheSplitOfTheCards) {
  DeploymentRow row;
  row.engines = 7, row.engine_cards = 32, row.reference_cards = 32, row.trainer_cards = 128;
  row.mode = "separate";
  EXPECT_EQ(split_text(row), "224 + 32 + 128");
  row.engines = 11;
  row.mode = "colocated";
  EXPECT_EQ(split_text(row), "352 shared + 32");
  row.engines = 12;
  row.mode = "fused";
  EXPECT_EQ(split_text(row), "384 shared");
}

TEST(DeploymentComparison, PublishedFiguresAreListedForTheirNumberOfCards) {
  DeploymentComparison comparison;
  comparison.cards = 384;
  comparison.model = "pangu-ultra-moe-718b";
  comparison.deployments = known_deployments();
  comparison.spreads = {{256, Tokens(1024), 4}};
  for (const Deployment& deployment : comparison.deployments)
    comparison.cells.push_back(
        {deployment.id, comparison.spreads[0], std::nullopt, std::nullopt, "not run here", {}});
  const auto published = [&](const std::string& id) {
    for (const DeploymentRow& row : deployment_rows(comparison)) {
      if (row.deployment == id)
        return row.published;
    }
    return -1.0;
  };
  EXPECT_EQ(published("separate"), 14e3);
  EXPECT_EQ(published("fusion"), 25e3);
  EXPECT_EQ(published("fusion-eta3"), 35e3);
  EXPECT_EQ(published("colocated"), 0);
  comparison.cards = 1536;
  EXPECT_EQ(published("fusion-eta1"), 127e3);
  EXPECT_EQ(published("separate"), 0);
  comparison.model = "qwen3-235b-a22b";
  EXPECT_EQ(published("fusion-eta1"), 0) << "of another model nothing is published";
}

TEST(Table, CsvQuotesSpecialCharacters) {
  std::vector<DeploymentRow> rows(2);
  rows[0].deployment = "a";
  rows[1].reason = "no \"room\", none";
  const std::string csv = to_csv(std::span<const DeploymentRow>(rows));
  EXPECT_TRUE(csv.starts_with("rung,lengths,bound,tokens_per_s,"));
  EXPECT_NE(csv.find("\na,,0,0"), std::string::npos) << csv;
  EXPECT_TRUE(csv.ends_with(",\"no \"\"room\"\", none\"\n")) << csv;
}

TEST(LengthSpread, RoundTrips) {
  const auto spread = parse_spread("8000:32768:2.5");
  ASSERT_TRUE(spread) << spread.error().context;
  EXPECT_EQ(spread->mean, 8000);
  EXPECT_EQ(spread->cap, Tokens(32768));
  EXPECT_EQ(spread->p99_over_median, 2.5);
  EXPECT_EQ(spread->text(), "8000:32768:2.5");
  for (const char* wrong :
       {"", "8000", "8000:32768", "8000:32768:8:1", "a:b:c", "8000:32768:0.5", "9000:8000:2"}) {
    const auto refused = parse_spread(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().context.find("the format is mean:cap:p99/median"), std::string::npos);
  }
}

template <class Change>
std::string ladder_error(Change change) {
  cli::LadderOptions command;
  command.config = std::string(TEMPER_SOURCE_DIR) + "/configs/cm384_pangu.yaml";
  change(command);
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_ladder(command, out, err), 2);
  EXPECT_EQ(out.str(), "");
  return err.str();
}

TEST(LadderCommand, RefusesWrongFlagsByName) {
  EXPECT_NE(ladder_error([](cli::LadderOptions& c) { c.config = "none.yaml"; }).find("none.yaml"),
            std::string::npos);
  EXPECT_EQ(ladder_error([](cli::LadderOptions& c) { c.effort = 0; }),
            "temper: --effort: expected at least 1, found 0\n");
  EXPECT_EQ(ladder_error([](cli::LadderOptions& c) { c.steps = 0; }),
            "temper: --steps: expected at least 1, found 0\n");
  EXPECT_EQ(ladder_error([](cli::LadderOptions& c) { c.rungs = {"fusion-eta9"}; }),
            "temper: --rung fusion-eta9: did you mean `fusion-eta1`?\n");
  EXPECT_EQ(ladder_error([](cli::LadderOptions& c) { c.batches = {"0"}; }),
            "temper: --batch 0: expected a number of prompts, 1 or more\n");
  EXPECT_EQ(ladder_error([](cli::LadderOptions& c) {
              c.batches = {"512", "512"};
            }),
            "temper: --batch: 512 is given twice\n");
  EXPECT_NE(
      ladder_error([](cli::LadderOptions& c) { c.lengths = {"8000"}; }).find("lengths `8000`"),
      std::string::npos);
  const std::string local = ladder_error([](cli::LadderOptions& c) {
    c.config = std::string(TEMPER_SOURCE_DIR) + "/configs/quickstart.yaml";
  });
  EXPECT_NE(local.find("hardware: found local, expected `simulated`"), std::string::npos) << local;
}

}  // namespace
}  // namespace temper::study
