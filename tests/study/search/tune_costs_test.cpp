// Searches by price and by energy.
#include "cli/study/tune_command.hpp"
#include "core/files.hpp"
#include "core/yaml.hpp"
#include "orchestrator/metrics/cost.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "study/search/tune.hpp"
#include "study/search/tune_objective.hpp"
#include "study/search/tune_report.hpp"
#include "study/search/tune_screen.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace temper::study {

using namespace orchestrator;
namespace {

constexpr double kHour = 3600;

/// The small pipeline with prices and power of cards, tuned with few runs.
class TuneCosts : public ::testing::Test {
 protected:
  void SetUp() override {
    given_.cost = {.card_hour = 4, .idle_watts = 300, .busy_watts = 900};
    options_.runs = 12;
    options_.response_weight = 1;
    options_.finalists = 2;
    options_.final_updates = 3;
    options_.etas = {0, 1};
    options_.objective = TuneObjective::Price;
  }
  Result<TuneResult> search() {
    EXPECT_TRUE(write_file_atomically(file_, to_yaml(given_)));
    options_.config = orchestrator::ConfigFile::read(file_).value();
    return tune(options_);
  }
  TuneResult tuned() {
    auto result = search();
    EXPECT_TRUE(result) << result.error().context;
    return *std::move(result);
  }
  std::string error() {
    const auto result = search();
    EXPECT_FALSE(result);
    return result ? "" : result.error().context;
  }

  const test::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "small.yaml";
  PipelineConfig given_ = temper::testing::small_pipeline();
  TuneOptions options_;
};

TEST_F(TuneCosts, AnObjectiveWithoutPricesOrPowerNamesTheKeys) {
  given_.cost = {};
  EXPECT_EQ(error(),
            "--objective price: expected the price of a card, found `cost.card_hour: 0`; set it, "
            "and `cost.rollout_card_hour` if cards that only rollout engines have are cheaper");
  options_.objective = TuneObjective::Energy;
  EXPECT_EQ(error(),
            "--objective energy: expected the power of a card, found 0; set `cost.idle_watts` and "
            "`cost.busy_watts`, and `cost.train_watts` and `cost.decode_watts` if they differ");
}

TEST_F(TuneCosts, TheBestByPriceTrainsTheMostTokensPerPrice) {
  const TuneResult t = tuned();
  const TuneRow& best = t.tried[t.fastest].row;
  for (const Candidate& c : t.tried) {
    if (c.row.tokens_per_price && c.row.reason.empty()) {
      EXPECT_GE(*best.tokens_per_price, *c.row.tokens_per_price);
    }
  }
  // Every card has the same price: 4 per hour.
  EXPECT_NEAR(*best.objective, *best.tokens_per_s * kHour / (best.total_cards * 4), 1e-6);
  EXPECT_EQ(best.objective, best.tokens_per_price);
}

TEST_F(TuneCosts, ARunOfTheAnswerReproducesItsObjective) {
  for (const TuneObjective objective : {TuneObjective::Price, TuneObjective::Energy}) {
    options_.objective = objective;
    const TuneResult t = tuned();
    const Candidate& best = t.tried[t.best];
    PipelineConfig again = read_yaml<PipelineConfig>("tuned.yaml", to_yaml(best.config), {}).value;
    ASSERT_TRUE(validate(again).empty());
    again.steps =
        steps_for(options_.final_updates, static_cast<std::int32_t>(again.staleness.bound));
    const CostSummary cost = simulate(again)->steady.cost.value();
    EXPECT_EQ(objective == TuneObjective::Price ? cost.tokens_per_price : cost.tokens_per_kwh,
              best.row.objective);
  }
}

TEST_F(TuneCosts, PlansMayUseFewerCards) {
  std::set<std::int32_t> cards;
  for (const Candidate& c : tuned().tried)
    cards.insert(c.row.total_cards);
  EXPECT_GT(cards.size(), 1U);
  EXPECT_EQ(*cards.rbegin(), 8);
  options_.only = {{"total_cards", {6, 8}}};
  for (const Candidate& c : tuned().tried)
    EXPECT_GE(c.row.total_cards, 6);
}

TEST_F(TuneCosts, OtherObjectivesUseAllCards) {
  options_.objective = TuneObjective::Throughput;
  for (const Candidate& c : tuned().tried)
    EXPECT_EQ(c.row.total_cards, 8);
  options_.only = {{"total_cards", {4}}};
  EXPECT_EQ(error().find("--only total_cards: found an objective that always uses all cards"), 0U)
      << error();
}

TEST_F(TuneCosts, APlanBelowTheRateScoresLess) {
  Rates slow, fast;
  slow.sustained_per_s = 500, fast.sustained_per_s = 1000;
  slow.cost = {.price = 1, .tokens_per_price = 200, .kwh = {}, .tokens_per_kwh = {}};
  fast.cost = {.price = 1, .tokens_per_price = 100, .kwh = {}, .tokens_per_kwh = {}};
  const Score score = score_of(options_);
  EXPECT_EQ(score(slow), 200);
  EXPECT_EQ(score(fast), 100);
  options_.constraints.min_tokens_per_s = 1000;
  EXPECT_EQ(score(slow), 200 * 0.5 * 0.5);  // It reaches half of the rate.
  EXPECT_EQ(score(fast), 100);
  EXPECT_EQ(in_unit(options_, given_, slow), 200);  // What the report says is not changed.
}

TEST_F(TuneCosts, CheapRolloutCardsFavorPlansThatUseThem) {
  options_.only = {{"total_cards", {8}}};
  options_.modes = {PlacementMode::Separate, PlacementMode::Fused};
  const double even = *tuned().tried.front().row.objective;
  given_.cost.rollout_card_hour = 0.1;
  const TuneResult t = tuned();
  EXPECT_EQ(t.tried[t.best].row.mode, "separate");  // Fused cards also train.
  EXPECT_GT(*t.tried[t.best].row.objective, even);
}

TEST_F(TuneCosts, BatchesAreComparableByPrice) {
  options_.vary = {*parse_axis("--vary", "algorithm.groups_per_update=8,16")};
  std::set<std::string> varied;
  for (const Candidate& c : tuned().tried)
    varied.insert(c.row.vary);
  EXPECT_TRUE(varied.contains("algorithm.groups_per_update=16"));
}

TEST_F(TuneCosts, TheReportHasTheGainInTheObjective) {
  options_.objective = TuneObjective::Energy;
  const TuneResult t = tuned();
  const TuneRow& best = t.tried[t.best].row;
  const TuneRow& given = t.tried[t.given].row;
  ASSERT_NE(t.best, t.given);
  const std::string text = tune_text(t);
  EXPECT_NE(text.find(fmt::format("trained tokens per kWh, x{:.2f} of the given configuration",
                                  *best.objective / *given.objective)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(fmt::format("on {} of 8 cards", best.total_cards)), std::string::npos);
  EXPECT_NE(text.find("closed form against these: tokens per kWh"), std::string::npos);
  EXPECT_NE(tune_svg(t).find("trained tokens per kWh"), std::string::npos);
}

TEST_F(TuneCosts, TheGainOnThePageIsInTokensPerSecond) {
  ASSERT_TRUE(write_file_atomically(file_, to_yaml(given_)));
  cli::TuneOptions command;
  command.config = file_.string();
  command.objective = "price";
  command.keep = true;
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_tune(command, out, err), 2);
  EXPECT_NE(err.str().find("--keep: "), std::string::npos) << err.str();
}

TEST_F(TuneCosts, TheClosedFormRanksByTheObjective) {
  given_.cost.rollout_card_hour = 0.5;
  options_.runs = 60;
  for (const TuneObjective objective : {TuneObjective::Price, TuneObjective::Energy}) {
    options_.objective = objective;
    const TuneResult t = tuned();
    EXPECT_GT(t.closed.value().ranks, 0.6) << name_of(objective);
  }
  Screen screen =
      Screen::create({given_, PlacementMode::Separate, {1}, {}, "", {}, {4, 8}}).value();
  const auto best = [&](const Score& score) { return screen.run(score, 1).front().closed; };
  const Rates cheapest = best([](const Rates& r) { return r.cost->tokens_per_price; });
  const Rates fastest = best([](const Rates& r) { return std::optional(r.sustained_per_s); });
  EXPECT_GT(*cheapest.cost->tokens_per_price, *fastest.cost->tokens_per_price);
  EXPECT_LT(cheapest.sustained_per_s, fastest.sustained_per_s);
}

TEST(ClosedFormCosts, PriceEveryCardByItsRoles) {
  PipelineConfig config = temper::testing::small_pipeline();
  config.cost = {.card_hour = 4, .rollout_card_hour = 1, .idle_watts = 300, .busy_watts = 900};
  for (const auto& [mode, name] : EnumNames<PlacementMode>::value) {
    SCOPED_TRACE(name);
    Screen screen = Screen::create({config, mode, {1}, {}, "", {}}).value();
    const auto best =
        screen.run([](const Rates& r) { return std::optional(r.sustained_per_s); }, 1);
    ASSERT_FALSE(best.empty());
    const ScreenPoint& p = best.front();
    const CostSummary cost = p.closed.cost.value();
    const PaidCards cards = paid_cards(actor_slots(p.config, p.cards));
    const double hour = static_cast<double>(cards.all - cards.rollout_only) * 4 +
                        static_cast<double>(cards.rollout_only);
    EXPECT_NEAR(*cost.tokens_per_price, p.closed.sustained_per_s * kHour / hour, 1e-6);
    double all = 0;
    for (const auto& [state, share] : p.closed.states)
      all += share;
    EXPECT_NEAR(all, 1, 1e-9);
  }
}

TEST(SpaceOfFewerCards, EveryPointUsesItsNumberOfCards) {
  const ResolvedPipeline like = resolve(temper::testing::small_pipeline()).value();
  for (const auto& [mode, name] : EnumNames<PlacementMode>::value) {
    SCOPED_TRACE(name);
    const Space space(like.config, mode, *like.simulation, {4, 8});
    std::set<std::size_t> totals;
    for (std::size_t n = 0; n < space.size(); ++n) {
      const auto config = space.at(space.point(n));
      if (!config)
        continue;
      std::set<CardId> used;
      const PlacementConfig cards = resolve_placement(*config);
      for (const auto* of : {&cards.rollout, &cards.trainer, &cards.reference})
        used.insert(of->begin(), of->end());
      ASSERT_EQ(std::ssize(used), config->placement.cards);
      totals.insert(used.size());
    }
    EXPECT_EQ(totals, (std::set<std::size_t>{4, 8}));
  }
}

}  // namespace
}  // namespace temper::study
