#include "study/simulate/sweep.hpp"

#include "cli/study/sweep_command.hpp"
#include "core/text/svg_plot.hpp"
#include "core/yaml.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace temper::study {

using namespace orchestrator;
namespace {

using temper::testing::small_pipeline;

/// The small pipeline as a file.
std::string small_file() {
  const std::string path = test::temporary_file("sweep_small.yaml");
  std::ofstream(path) << to_yaml(small_pipeline());
  return path;
}

SweepOptions options(std::vector<std::string> over, std::vector<std::string> any = {}) {
  SweepOptions o;
  o.config = small_file();
  for (const std::string& text : over)
    o.over.push_back(parse_axis("--over", text).value());
  for (const std::string& text : any)
    o.any.push_back(parse_axis("--any", text).value());
  return o;
}

TEST(SweepAxis, ParsesKeysAndValues) {
  const auto one = parse_axis("--over", "staleness.bound=0,1,2");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->name(), "staleness.bound");
  EXPECT_EQ(one->values.size(), 3U);
  EXPECT_EQ(one->sets(2), (std::vector<std::string>{"staleness.bound=2"}));
  const auto two = parse_axis("--over", "a+b=1/2,[3, 4]/5");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->sets(1), (std::vector<std::string>{"a=[3, 4]", "b=5"}));
  EXPECT_EQ(two->text(0), "1/2");
}

TEST(SweepAxis, RefusesInvalidText) {
  for (const char* wrong : {"", "a", "=1", "a=", "a=1,", "a+b=1", "a+b=1/2,3", "a+b=1/2/3"}) {
    const auto refused = parse_axis("--any", wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_TRUE(refused.error().context.starts_with("--any")) << refused.error().context;
  }
}

TEST(Sweep, PointsHaveTheFiguresOfTheirConfigurations) {
  const auto sweep = run_sweep(options({"staleness.bound=0,2", "steps=6,8"}));
  ASSERT_TRUE(sweep) << sweep.error().context;
  ASSERT_EQ(sweep->points.size(), 4U);  // the last axis varies fastest
  PipelineConfig config = small_pipeline();
  config.staleness.bound = 2;
  config.steps = 6;
  const auto figures = simulate(config);
  ASSERT_TRUE(figures && sweep->points[2].figures);
  EXPECT_EQ(sweep->points[2].figures->whole.trained_per_s, figures->whole.trained_per_s);
}

TEST(Sweep, KeepsTheBestValuesOfFreeKeys) {
  const auto each = run_sweep(options({"rollout.concurrency=4,8,16"}));
  const auto best = run_sweep(options({"staleness.bound=1"}, {"rollout.concurrency=4,8,16"}));
  ASSERT_TRUE(each && best);
  double most = 0;
  for (const SweepPoint& point : each->points)
    most = std::max(most, point.figures->steady.sustained_per_s);
  ASSERT_EQ(best->points.size(), 1U);
  EXPECT_EQ(best->points[0].figures->steady.sustained_per_s, most);
  EXPECT_EQ(best->points[0].tried, 3U);
}

TEST(Sweep, ARefusedCombinationKeepsItsReason) {
  const auto sweep = run_sweep(options({"rollout.replicas=2,3"}));
  ASSERT_TRUE(sweep);
  EXPECT_TRUE(sweep->points[0].figures);
  EXPECT_FALSE(sweep->points[1].figures);
  EXPECT_EQ(sweep->points[1].refused, 1U);
  EXPECT_NE(sweep->points[1].reason.find("must divide the 4 cards"), std::string::npos);
  EXPECT_NE(sweep_text(*sweep).find("not run\n  3: rollout.replicas"), std::string::npos)
      << sweep_text(*sweep);
  EXPECT_NE(sweep_csv(*sweep).find("must divide the 4 cards"), std::string::npos);
}

TEST(Sweep, FittedLayoutsFollowTheCards) {
  // The given layout communicates within every layer, the fitted one does not.
  SweepOptions o = options({"placement.rollout_cards+rollout.replicas=2/1,4/2"});
  o.sets = {"simulation.trainer.tp=2"};
  const auto given = run_sweep(o);
  o.layouts = SweepOptions::Layouts::Fitted;
  const auto fitted = run_sweep(o);
  ASSERT_TRUE(given && fitted);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(given->points[i].figures && fitted->points[i].figures);
    const auto training = [](const SweepPoint& point) {
      const Rates& r = point.figures->steady;
      return r.states.at(actors::CardState::Train) * r.seconds_per_update;
    };
    EXPECT_LT(training(fitted->points[i]), training(given->points[i]));
    EXPECT_EQ(fitted->points[i].config->simulation.trainer.tp, 1);
  }
  o.any.push_back(parse_axis("--any", "simulation.trainer.pp=1,2").value());
  const auto both = run_sweep(o);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().context, "simulation.trainer.pp: set by --fit; remove one of the two");
}

TEST(Sweep, PlotsALineForEachValueOfTheSecondAxisAndAGapWhereNothingRan) {
  const auto sweep = run_sweep(options({"rollout.replicas=1,2,3,4", "staleness.bound=0,1"}));
  ASSERT_TRUE(sweep);
  const auto svg = sweep_svg(*sweep, {"A title", ""});
  ASSERT_TRUE(svg) << svg.error().context;
  EXPECT_NE(svg->find("A title"), std::string::npos);
  EXPECT_NE(svg->find("bound 1</text>"), std::string::npos);
  EXPECT_NE(svg->find(">rollout.replicas</text>"), std::string::npos);
  // Replicas 3 does not divide 4 cards: each of the four lines is drawn in two parts.
  std::size_t broken = 0;
  for (std::size_t at = svg->find("<path d=\"M"); at != std::string::npos;
       at = svg->find("<path d=\"M", at + 1)) {
    const std::string path = svg->substr(at + 9, svg->find('"', at + 9) - at - 9);
    broken += std::ranges::count(path, 'M') == 2 ? 1 : 0;
  }
  EXPECT_EQ(broken, 4U);
  EXPECT_FALSE(sweep_svg(*run_sweep(options({"simulation.model=qwen2.5-0.5b"})), {}));
}

TEST(SvgPlot, TicksAreRoundAndCoverTheLargestValue) {
  EXPECT_EQ(round_ticks(48.7, 5), (std::vector<double>{0, 10, 20, 30, 40, 50}));
  EXPECT_EQ(round_ticks(100, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(round_ticks(3, 4), (std::vector<double>{0, 1, 2, 3}));
}

TEST(SvgPlot, PlacesValuesAtTheirAxisPositions) {
  Plot plot;
  plot.title = "a < b";
  plot.x = {0, 10};
  plot.panels = {{"y", {{"l", {0.0, 100.0}}}, 100}};
  const std::string svg = to_svg(plot);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  // The panel is 210 high and begins below title (34), legend (20) and 14: from 68 to 278; x from
  // 76 + 14 to 760 - 24 - 14.
  EXPECT_NE(svg.find("M90.0 278.0L722.0 68.0"), std::string::npos) << svg;
}

template <class Change>
std::string error_of(Change change) {
  cli::SweepOptions command;
  command.config = small_file();
  change(command);
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_sweep(command, out, err), 2);
  return err.str();
}

TEST(SweepCommand, RefusesWrongFlagsByName) {
  EXPECT_EQ(error_of([](cli::SweepOptions&) {}),
            "temper: nothing to sweep; give --over key=value,value\n");
  EXPECT_NE(
      error_of([](cli::SweepOptions& c) { c.over = {"stalenes.bound=1"}; }).find("did you mean"),
      std::string::npos);
  EXPECT_NE(
      error_of([](cli::SweepOptions& c) { c.over = {"staleness.bound=x"}; }).find("found `x`"),
      std::string::npos);
  EXPECT_EQ(error_of([](cli::SweepOptions& c) { c.over = {"steps=4"}, c.any = {"steps=5"}; }),
            "temper: steps: given twice in --over or --any\n");
  EXPECT_NE(error_of([](cli::SweepOptions& c) {
              c.sets = {"hardware=local"}, c.over = {"steps=4"};
            }).find("hardware: found local, expected `simulated` for a sweep"),
            std::string::npos);
  EXPECT_NE(error_of([](cli::SweepOptions& c) {
              c.over = {"steps=4,3"}, c.plot = "/nowhere/x.svg";
            }).find("expected ascending values"),
            std::string::npos);
}

}  // namespace
}  // namespace temper::study
