// Sweeps over staleness rules, on a small run with a long tail. TEMPER_UPDATE_GOLDEN=1 rewrites
// tests/golden/sweep.
#include "cli/study/sweep_command.hpp"
#include "core/files.hpp"
#include "core/yaml.hpp"
#include "study/sweep/sweep_report.hpp"
#include "tests/study/sweep/sweep_of.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace temper::study {

using namespace orchestrator;
namespace {

namespace fs = std::filesystem;
using temper::testing::small_pipeline;

/// One response in a hundred is 40 times the median.
std::string long_tailed_file() {
  PipelineConfig config = small_pipeline();
  config.steps = 16;
  config.rollout.concurrency = 64;
  config.simulation.response.mean = 400;
  config.simulation.response.p99_over_median = 40;
  config.simulation.response.cap = Tokens(8192);
  const std::string path = test::temporary_file("rules_small.yaml");
  EXPECT_TRUE(write_file_atomically(path, to_yaml(config)));
  return path;
}

constexpr std::string_view kAllRules =
    "staleness.rule+staleness.bound=sync/0,exact/1,aggregate/1,count/1,drop/1,wait/1,window/1,"
    "in_order/1,exact/2,aggregate/2,count/2,drop/2,wait/2,window/2,in_order/2";

SweepOptions options_over(const std::vector<std::string>& over) {
  SweepOptions o;
  o.config = orchestrator::ConfigFile::read(long_tailed_file()).value();
  o.over = parse_axes("--over", over).value();
  return o;
}

/// Every rule at every bound.
SweepOptions rules_at(const std::string& rules, const std::string& bounds) {
  return options_over({"staleness.bound=" + bounds, "staleness.rule=" + rules});
}

struct Row {
  double bound = 0;
  std::string rule;
  SweepRun run;
};

/// The runs of a sweep over rules_at(), or its error.
Result<std::vector<Row>> rows_of(const SweepOptions& o) {
  TEMPER_TRY(const Sweep done, sweep_of(o));
  std::vector<Row> rows;
  for (const SweepCell& cell : done.cells) {
    for (const SweepRun& run : cell.runs)
      rows.push_back({std::stod(cell.values[0]), cell.values[1], run});
  }
  return rows;
}

const SweepRun& run_of(const std::vector<Row>& rows, const std::string& rule) {
  return std::ranges::find(rows, rule, &Row::rule)->run;
}

TEST(StalenessRules, ExactKeepsTheBoundAndWastesNothing) {
  const auto rows = rows_of(rules_at("exact", "1,2,3"));
  ASSERT_TRUE(rows) << rows.error().context;
  for (const Row& row : *rows) {
    EXPECT_EQ(static_cast<double>(row.run.staleness_max), row.bound);
    EXPECT_EQ(row.run.wasted, 0);
    EXPECT_EQ(row.run.groups_evicted, 0U);
    EXPECT_EQ(row.run.bias, 1);
    EXPECT_EQ(row.run.groups_trained, 16U * 8);
  }
}

TEST(StalenessRules, AggregateIsFasterAndExceedsTheBound) {
  const auto rows = rows_of(rules_at("exact,aggregate", "2"));
  ASSERT_TRUE(rows);
  const SweepRun& aggregate = run_of(*rows, "aggregate");
  EXPECT_GT(aggregate.staleness_max, 2);
  EXPECT_EQ(aggregate.wasted, 0);
  EXPECT_LT(aggregate.seconds, run_of(*rows, "exact").seconds);
}

TEST(StalenessRules, DropAndWindowWasteLongResponses) {
  const auto rows = rows_of(rules_at("exact,drop,window", "1"));
  ASSERT_TRUE(rows);
  for (const char* rule : {"drop", "window"}) {
    const SweepRun& run = run_of(*rows, rule);
    EXPECT_LE(run.staleness_max, 1) << rule;
    EXPECT_GT(run.groups_evicted, 0U) << rule;
    EXPECT_GT(run.wasted, 0) << rule;
    EXPECT_LT(run.bias, 1) << rule;
    EXPECT_LT(run.trained_length, run_of(*rows, "exact").trained_length) << rule;
  }
}

TEST(StalenessRules, LosslessRulesTrainTheSameResponses) {
  const auto done = sweep_of(
      options_over({"staleness.rule+staleness.bound=sync/0,exact/2,aggregate/2,count/2,wait/2"}));
  ASSERT_TRUE(done);
  for (const SweepCell& cell : done->cells) {
    const SweepRun& run = cell.runs.front();
    EXPECT_EQ(run.trained_length, done->cells.front().runs.front().trained_length)
        << cell.values[0];
    EXPECT_EQ(run.trained_length, run.generated_length) << cell.values[0];
  }
}

TEST(StalenessRules, RowsKeepTheOrderOfTheirAxes) {
  const auto rows = rows_of(rules_at("sync,exact", "0,2,1"));
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 6U);
  EXPECT_EQ((*rows)[0].rule, "sync");
  EXPECT_EQ((*rows)[0].run.staleness, "0:128");
  EXPECT_EQ((*rows)[2].run.end, SweepEnd::NotRun);  // sync runs once, at 0
  EXPECT_EQ((*rows)[3].bound, 2);
  EXPECT_EQ((*rows)[4].run.end, SweepEnd::NotRun);
  EXPECT_EQ((*rows)[5].bound, 1);
}

TEST(StalenessRules, EqualSeedsGiveEqualTablesOnAnyNumberOfThreads) {
  SweepOptions o = options_over({std::string(kAllRules)});
  const auto one = sweep_of(o);
  o.simulate.threads = 3;
  const auto three = sweep_of(o);
  o.sets = {"seed=99"};
  const auto other = sweep_of(o);
  ASSERT_TRUE(one && three && other);
  EXPECT_EQ(sweep_csv(*one), sweep_csv(*three));
  EXPECT_NE(sweep_csv(*one), sweep_csv(*other));
}

TEST(StalenessRules, TheTableShowsTheReasonOfARefusedRun) {
  for (const auto& [bound, reason] :
       {std::pair{"0", "at least 1 for `drop`"}, std::pair{"0.5", "an integer for `drop`"}}) {
    const auto done = sweep_of(rules_at("aggregate,drop", bound));
    ASSERT_TRUE(done) << done.error().context;
    EXPECT_EQ(done->cells[0].runs[0].end, SweepEnd::Ran);
    const SweepRun& drop = done->cells[1].runs[0];
    EXPECT_EQ(drop.end, SweepEnd::NotRun);
    EXPECT_NE(drop.reason.find(reason), std::string::npos) << drop.reason;
    const std::string text = sweep_text(*done);
    EXPECT_NE(text.find(fmt::format("not run\n  bound={} rule=drop: staleness.bound", bound)),
              std::string::npos)
        << text;
  }
}

TEST(StalenessRules, FractionalBoundsWorkWhereAllowed) {
  const auto rows = rows_of(rules_at("aggregate", "0.5"));
  ASSERT_TRUE(rows) << rows.error().context;
  EXPECT_EQ(rows->front().run.end, SweepEnd::Ran);
  EXPECT_EQ(rows->front().bound, 0.5);
}

TEST(StalenessRules, TheTableMatchesTheGoldenFile) {
  const auto done = sweep_of(options_over({std::string(kAllRules)}));
  ASSERT_TRUE(done);
  const std::string text = sweep_text(*done);
  const auto path = fs::path(TEMPER_SOURCE_DIR) / "tests/golden/sweep/small.txt";
  if (std::getenv("TEMPER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, text));
    return;
  }
  EXPECT_EQ(text, read_file(path).value()) << path << " is stale; TEMPER_UPDATE_GOLDEN=1";
}

TEST(StalenessRules, TheTableShowsMeansOverSeeds) {
  SweepOptions o = rules_at("exact", "1,2");
  o.seeds = {7, 8};
  const auto both = sweep_of(o);
  ASSERT_TRUE(both) << both.error().context;
  const auto rows = rows_of(o);
  ASSERT_EQ(rows->size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*rows)[i].bound, i < 2 ? 1 : 2);
    EXPECT_EQ((*rows)[i].run.seed, i % 2 == 0 ? 7U : 8U);
    SweepOptions alone = rules_at("exact", i < 2 ? "1" : "2");
    alone.sets = {fmt::format("seed={}", (*rows)[i].run.seed)};
    const auto own = rows_of(alone);
    ASSERT_TRUE(own);
    EXPECT_EQ(own->front().run.seconds, (*rows)[i].run.seconds);
  }
  const double a = (*rows)[0].run.seconds, b = (*rows)[1].run.seconds;
  ASSERT_NE(a, b);
  const std::string text = sweep_text(*both);
  EXPECT_NE(text.find(fmt::format(
                "{:.1f} ({:.1f}..{:.1f})", (a + b) / 2, std::min(a, b), std::max(a, b))),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("means over 2 seeds"), std::string::npos) << text;
}

TEST(StalenessRules, FurtherAxesAppearInTheTableAndThePlot) {
  const auto done = sweep_of(
      options_over({"staleness.rule+staleness.bound=sync/0,exact/1", "rollout.concurrency=16,64"}));
  ASSERT_TRUE(done) << done.error().context;
  ASSERT_EQ(done->cells.size(), 4U);
  EXPECT_EQ(done->cells[0].values, (std::vector<std::string>{"sync", "0", "16"}));
  EXPECT_EQ(done->cells[3].values, (std::vector<std::string>{"exact", "1", "64"}));
  EXPECT_GT(done->cells[2].runs[0].seconds, done->cells[3].runs[0].seconds);
  const std::string text = sweep_text(*done);
  EXPECT_TRUE(text.starts_with("| rule  | bound | concurrency |")) << text;
  const auto svg = sweep_svg(*done, "title");
  ASSERT_TRUE(svg);
  for (const char* words :
       {">rule=sync concurrency=16<", ">rule=exact concurrency=64<", ">staleness.bound<"})
    EXPECT_NE(svg->find(words), std::string::npos) << words;
  EXPECT_FALSE(rewards_svg(*done, RewardAxis::Steps, "nothing learns"));
}

TEST(StalenessRules, TheShippedPresetRunsEachRuleAtItsBounds) {
  cli::SweepOptions command;
  command.config = long_tailed_file();
  command.preset = std::string(TEMPER_CONFIGS) + "/presets/staleness-rules.yaml";
  command.out = test::temporary_file("preset_out");
  std::ostringstream out, err;
  ASSERT_EQ(cli::run_sweep(command, out, err), 0) << err.str();
  EXPECT_EQ(out.str().find("not run"), std::string::npos) << out.str();
  const std::string csv = read_file(fs::path(command.out) / "sweep.csv").value();
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 1 + 3 * 7);
}

TEST(StalenessRules, TheCommandWritesTheTableAndAPlotWithALinePerRule) {
  cli::SweepOptions command;
  command.config = long_tailed_file();
  command.over = {"staleness.rule=sync,exact,drop", "staleness.bound=2,0,1"};
  command.out = test::temporary_file("rules_out");
  std::ostringstream out, err;
  ASSERT_EQ(cli::run_sweep(command, out, err), 0) << err.str();
  const std::string csv = read_file(fs::path(command.out) / "sweep.csv").value();
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 3 * 3);
  EXPECT_TRUE(csv.starts_with(
      "staleness.rule,staleness.bound,seed,end,updates,seconds,tokens_per_s,trained_per_s"));
  const std::string svg = read_file(fs::path(command.out) / "sweep.svg").value();
  for (const char* words : {">rule=sync<",
                            ">rule=exact<",
                            ">rule=drop<",
                            ">trained tokens/s<",
                            ">tokens wasted, %<",
                            ">staleness.bound<"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  const std::string markdown = read_file(fs::path(command.out) / "sweep.md").value();
  const std::size_t table = markdown.find("\n\n");  // after the title; it was printed first
  ASSERT_NE(table, std::string::npos) << markdown;
  EXPECT_TRUE(out.str().starts_with(markdown.substr(table + 2))) << markdown;
  command.json = true;
  std::ostringstream json;
  ASSERT_EQ(cli::run_sweep(command, json, err), 0);
  EXPECT_NE(json.str().find("\"staleness.rule\": \"drop\""), std::string::npos) << json.str();
}

}  // namespace
}  // namespace temper::study
