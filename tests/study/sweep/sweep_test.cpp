#include "study/sweep/sweep.hpp"

#include "cli/study/sweep_command.hpp"
#include "core/text/svg_plot.hpp"
#include "core/yaml.hpp"
#include "study/sweep/sweep_report.hpp"
#include "tests/study/sweep/sweep_of.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
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

SweepOptions options(const std::vector<std::string>& over,
                     const std::vector<std::string>& any = {}) {
  SweepOptions o;
  o.config = ConfigFile::read(small_file()).value();
  o.over = parse_axes("--over", over).value();
  o.any = parse_axes("--any", any).value();
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

TEST(Sweep, RunsHaveTheFiguresOfTheirConfigurations) {
  SweepOptions o = options({"staleness.bound=0,2", "rollout.concurrency=8,16"});
  o.steps = 10;
  const auto whole = sweep_of(o);
  ASSERT_TRUE(whole) << whole.error().context;
  ASSERT_EQ(whole->cells.size(), 4U);  // the last axis varies fastest
  PipelineConfig config = small_pipeline();
  config.staleness.bound = 2;
  config.rollout.concurrency = 8;
  config.steps = 10;  // 5 of them in the steady state: 2 bound + 1 are not
  const auto figures = simulate(config);
  ASSERT_TRUE(figures);
  const SweepRun& run = whole->cells[2].runs[0];
  EXPECT_EQ(run.updates, 10U);
  EXPECT_NEAR(run.trained_per_s, figures->whole.trained_per_s, 0.05);
  EXPECT_NEAR(run.tokens_per_s, figures->whole.trained_per_s, 0.05);
  o.steps = 0;
  o.steady_steps = 5;
  const auto steady = sweep_of(o);
  ASSERT_TRUE(steady) << steady.error().context;
  const SweepRun& middle = steady->cells[2].runs[0];
  EXPECT_EQ(middle.updates, 5U);
  EXPECT_NEAR(middle.tokens_per_s, figures->steady.sustained_per_s, 0.05);
  EXPECT_NE(sweep_text(*steady).find("| s/update |"), std::string::npos) << sweep_text(*steady);
}

TEST(Sweep, ReadsAConfigurationAsARunDoes) {
  SweepOptions o = options({"staleness.bound=0,2"});
  const auto base = sweep_of(o);
  const std::filesystem::path child = test::temporary_file("sweep_child.yaml");
  std::ofstream(child) << "extends: " << std::filesystem::path(small_file()).filename().string()
                       << "\nseed: 7\n";
  o.config = ConfigFile::read(child).value();
  const auto extended = sweep_of(o);
  ASSERT_TRUE(base && extended) << extended.error().context;
  EXPECT_EQ(extended->cells[1].runs[0].updates, base->cells[1].runs[0].updates);
  EXPECT_EQ(extended->cells[1].runs[0].seed, 7U);
  o.config = ConfigFile::read("cm384_pangu").value();  // By its name, as it is shipped.
  o.steps = 1;
  const auto shipped = sweep_of(o);
  ASSERT_TRUE(shipped) << shipped.error().context;
  EXPECT_EQ(shipped->cells.size(), 2U);
}

TEST(Sweep, KeepsTheBestValuesOfFreeKeys) {
  const auto each = sweep_of(options({"rollout.concurrency=4,8,16"}));
  const auto best = sweep_of(options({"staleness.bound=1"}, {"rollout.concurrency=4,8,16"}));
  ASSERT_TRUE(each && best);
  double most = 0;
  std::string value;
  for (const SweepCell& cell : each->cells) {
    if (cell.runs[0].tokens_per_s > most)
      most = cell.runs[0].tokens_per_s, value = cell.values[0];
  }
  ASSERT_EQ(best->cells.size(), 1U);
  EXPECT_EQ(best->cells[0].runs[0].tokens_per_s, most);
  EXPECT_EQ(best->cells[0].values, (std::vector<std::string>{"1", value}));
  EXPECT_EQ(best->cells[0].tried, 3U);
}

TEST(Sweep, ARefusedCombinationKeepsItsReason) {
  const auto done = sweep_of(options({"rollout.replicas=2,3"}));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->cells[0].runs[0].end, SweepEnd::Ran);
  EXPECT_EQ(done->cells[1].runs[0].end, SweepEnd::NotRun);
  EXPECT_EQ(done->cells[1].refused, 1U);
  EXPECT_NE(done->cells[1].runs[0].reason.find("must divide the 4 cards"), std::string::npos);
  EXPECT_NE(sweep_text(*done).find("not run\n  replicas=3: rollout.replicas"), std::string::npos)
      << sweep_text(*done);
  EXPECT_NE(sweep_csv(*done).find("must divide the 4 cards"), std::string::npos);
  const auto none = sweep_of(options({"rollout.replicas=3"}));
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().context.starts_with(
      "no configuration of the sweep can run; replicas=3: rollout.replicas"))
      << none.error().context;
}

TEST(Sweep, FreeKeysWithoutARunAreDashes) {
  const auto done = sweep_of(options({"rollout.replicas=2,3"}, {"rollout.concurrency=8,16"}));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->cells[1].values, (std::vector<std::string>{"3", "-"}));
  EXPECT_NE(sweep_text(*done).find("| 3        |           - |       - |"), std::string::npos)
      << sweep_text(*done);
}

TEST(Sweep, FittedLayoutsFollowTheCards) {
  // The given layout communicates within every layer, the fitted one does not.
  SweepOptions o = options({"placement.rollout_cards+rollout.replicas=2/1,4/2"});
  o.sets = {"simulation.trainer.tp=2"};
  const auto given = sweep_of(o);
  o.layouts = SweepOptions::Layouts::Fitted;
  const auto fitted = sweep_of(o);
  const auto jobs = sweep_jobs(o);
  ASSERT_TRUE(given && fitted && jobs);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*jobs)[i].config.simulation.trainer.tp, 1);
    EXPECT_TRUE(fitted->cells[i].runs[0].trainer.starts_with("tp 1 pp "));
    const auto training = [](PipelineConfig config) {
      const Rates r = simulate(config).value().steady;
      return r.states.at(actors::CardState::Train) * r.seconds_per_update;
    };
    PipelineConfig as_given = (*jobs)[i].config;
    as_given.simulation.trainer = small_pipeline().simulation.trainer;
    as_given.simulation.trainer.tp = 2;
    EXPECT_LT(training((*jobs)[i].config), training(as_given));
    EXPECT_EQ(given->cells[i].runs[0].trainer, "");
  }
  o.any.push_back(parse_axis("--any", "simulation.trainer.pp=1,2").value());
  const auto both = sweep_of(o);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().context, "simulation.trainer.pp: set by --fit; remove one of the two");
}

TEST(Sweep, PlotsALineForEachValueOfTheSecondAxisAndAGapWhereNothingRan) {
  const auto done = sweep_of(options({"rollout.replicas=1,2,3,4", "staleness.bound=0,1"}));
  ASSERT_TRUE(done);
  const auto svg = sweep_svg(*done, "A title");
  ASSERT_TRUE(svg);
  EXPECT_NE(svg->find("A title"), std::string::npos);
  EXPECT_NE(svg->find("bound=1</text>"), std::string::npos);
  EXPECT_NE(svg->find(">rollout.replicas</text>"), std::string::npos);
  // Replicas 3 does not divide 4 cards: each of the four lines is drawn in two parts.
  std::size_t broken = 0;
  for (std::size_t at = svg->find("<path d=\"M"); at != std::string::npos;
       at = svg->find("<path d=\"M", at + 1)) {
    const std::string path = svg->substr(at + 9, svg->find('"', at + 9) - at - 9);
    broken += std::ranges::count(path, 'M') == 2 ? 1 : 0;
  }
  EXPECT_EQ(broken, 4U);
  EXPECT_FALSE(sweep_svg(*sweep_of(options({"simulation.model=qwen2.5-0.5b"})), ""));
}

TEST(Sweep, PlotsOverTheFirstNumberAndNamesLinesByTheKeysThatTellThemApart) {
  const auto done = sweep_of(options(
      {"placement.mode+rollout.replicas+staleness.bound=separate/2/1,separate/2/0,separate/1/0",
       "algorithm.groups_per_update+rollout.concurrency=4/8,8/16"}));
  ASSERT_TRUE(done) << done.error().context;
  const auto svg = sweep_svg(*done, "");
  ASSERT_TRUE(svg);
  EXPECT_NE(svg->find(">rollout.replicas<"), std::string::npos);
  EXPECT_NE(svg->find(">mode=separate bound=1 groups_per_update=8<"), std::string::npos) << *svg;
  EXPECT_EQ(short_names({"a.tp", "b.tp", "c.d.pp"}),
            (std::vector<std::string>{"a.tp", "b.tp", "pp"}));
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
std::string error_of(Change change, int code = 2) {
  cli::SweepOptions command;
  command.config = small_file();
  command.over = {"rollout.concurrency=8,16"};
  change(command);
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_sweep(command, out, err), code);
  EXPECT_EQ(out.str(), "");
  return err.str();
}

TEST(SweepCommand, RefusesWrongFlagsByName) {
  using C = cli::SweepOptions;
  EXPECT_EQ(error_of([](C& c) { c.over = {}; }),
            "temper: nothing to sweep; give --over key=value,value\n");
  EXPECT_EQ(error_of([](C& c) { c.steps = 4, c.steady = 4; }),
            "temper: --steps and --steady: give one of the two\n");
  EXPECT_EQ(error_of([](C& c) {
              c.seeds = {"1", "x"};
            }),
            "temper: --seeds: expected whole numbers from 0, found `x`\n");
  EXPECT_EQ(error_of([](C& c) { c.seeds = {"1", "1"}; }), "temper: --seeds: 1 is given twice\n");
  EXPECT_EQ(error_of([](C& c) { c.sets = {"rollout.concurrency=3"}; }),
            "temper: --set rollout.concurrency=3: rollout.concurrency is already set by --over; "
            "remove it\n");
  EXPECT_EQ(error_of([](C& c) { c.sets = {"seed=3"}, c.seeds = {"1"}; }),
            "temper: --set seed=3: seed is set by --seeds; remove it\n");
  EXPECT_NE(error_of([](C& c) { c.sets = {"sed=3"}; }).find("did you mean"), std::string::npos);
  EXPECT_NE(error_of([](C& c) { c.config = "/nowhere.yaml"; }).find("/nowhere.yaml"),
            std::string::npos);
  EXPECT_NE(error_of([](C& c) {
              c.sets = {"hardware=local"}, c.fit = true;
            }).find("hardware: found local, expected `simulated` for --fit"),
            std::string::npos);
}

TEST(SweepCommand, APresetAddsAxesAndSettings) {
  cli::SweepOptions command;
  command.config = small_file();
  command.preset = test::temporary_file("sweep_preset.yaml");
  command.over = {"rollout.concurrency=8,16"};
  std::ofstream(command.preset) << "over: [\"staleness.bound=0,1\"]\nset: [steps=5]\n";
  std::ostringstream out, err;
  ASSERT_EQ(cli::run_sweep(command, out, err), 0) << err.str();
  EXPECT_TRUE(out.str().starts_with("| bound | concurrency |")) << out.str();
  command.json = true;
  ASSERT_EQ(cli::run_sweep(command, out, err), 0);
  EXPECT_NE(out.str().find("\"updates\": 5"), std::string::npos) << out.str();
  std::ofstream(command.preset) << "ower: [a=1]\n";
  EXPECT_EQ(cli::run_sweep(command, out, err), 2);
  EXPECT_NE(err.str().find("did you mean `over`"), std::string::npos) << err.str();
}

TEST(SweepCommand, RefusesInvalidAxes) {
  using C = cli::SweepOptions;
  const auto error = [](std::vector<std::string> over) {
    return error_of([&](C& c) { c.over = std::move(over); });
  };
  EXPECT_NE(error({"staleness.rule=exakt"}).find("did you mean `exact`?"), std::string::npos);
  for (const char* wrong : {"two", "-1", "1025", "nan", "1x"}) {
    const std::string found = error({fmt::format("staleness.bound=1,{}", wrong)});
    EXPECT_TRUE(found.starts_with(
        fmt::format("temper: --over staleness.bound={}: staleness.bound: ", wrong)))
        << found;
  }
  EXPECT_EQ(error({"rollout.concurency=1,2"}),
            "temper: --over rollout.concurency=1: rollout.concurency: unknown key; did you mean "
            "`concurrency`?\n");
  EXPECT_EQ(error({"rollout.concurrency=1,many"}),
            "temper: --over rollout.concurrency=many: rollout.concurrency: expected an integer, "
            "found `many`\n");
  EXPECT_EQ(error({"rollout.concurrency"}),
            "temper: --over rollout.concurrency: expected key=value,value or "
            "key+key=value/value,...\n");
  EXPECT_EQ(error({"rollout.concurrency=8,8"}),
            "temper: --over rollout.concurrency: 8 is given twice\n");
  EXPECT_EQ(error({"run_dir=a,b"}),
            "temper: --over run_dir: run_dir is set by the sweep; remove it\n");
  EXPECT_EQ(error({"steps=3,4", "steps=5"}),
            "temper: --over steps: steps is already set by --over; remove it\n");
  EXPECT_EQ(error({"staleness.bound=0,1", "staleness={bound: 3}"}),
            "temper: --over staleness: staleness is already set by --over; remove it\n");
  EXPECT_EQ(error_of([](C& c) { c.over = {"steps=4"}, c.any = {"steps=5"}; }),
            "temper: --any steps: steps is already set by --over; remove it\n");
}

TEST(SweepCommand, AFolderThatCannotBeMadeIsFoundBeforeTheRuns) {
  const std::string file = small_file();
  EXPECT_NE(error_of([&](cli::SweepOptions& c) { c.out = file + "/out"; }, 1)
                .find("cannot create folder " + file + "/out"),
            std::string::npos);
}

TEST(SweepAxis, ValuesMayBeYamlSectionsAndQuotedTexts) {
  const SweepAxis axis =
      parse_axis("--over", "a={x: 1, y: ','},{x: 3, y: [4, 5]},'6,7',\"8,9\",it's,10").value();
  EXPECT_EQ(
      axis.values,
      (std::vector<std::vector<std::string>>{
          {"{x: 1, y: ','}"}, {"{x: 3, y: [4, 5]}"}, {"'6,7'"}, {"\"8,9\""}, {"it's"}, {"10"}}));
}

TEST(SweepCommand, ResumesOnlyRealRuns) {
  EXPECT_EQ(error_of([](cli::SweepOptions& c) { c.resume = true; }),
            "temper: --resume: expected hardware: local; simulated runs leave no folders to "
            "resume, so start the sweep again without --resume\n");
}

}  // namespace
}  // namespace temper::study
