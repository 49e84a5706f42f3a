// Compares staleness rules on a small run with a long tail. TEMPER_UPDATE_GOLDEN=1 rewrites
// tests/golden/compare.
#include "study/compare/compare.hpp"

#include "cli/study/compare_command.hpp"
#include "core/files.hpp"
#include "core/text/table.hpp"
#include "core/yaml.hpp"
#include "study/compare/compare_report.hpp"
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
  const std::string path = test::temporary_file("compare_small.yaml");
  EXPECT_TRUE(write_file_atomically(path, to_yaml(config)));
  return path;
}

CompareOptions compare_options(std::vector<std::string> policies, std::vector<double> etas) {
  CompareOptions o;
  o.config = long_tailed_file();
  o.policies = parse_policies(policies).value();
  o.etas = std::move(etas);
  return o;
}

/// The rows of a comparison, or its error.
Result<std::vector<CompareRow>> rows_of(const CompareOptions& o) {
  TEMPER_TRY(PolicyComparison done, compare(o));
  return std::move(done.rows);
}

const CompareRow& row_of(const std::vector<CompareRow>& rows, const std::string& policy) {
  return *std::ranges::find(rows, policy, &CompareRow::policy);
}

TEST(Compare, ExactKeepsTheBoundAndWastesNothing) {
  const auto rows = rows_of(compare_options({"exact"}, {1, 2, 3}));
  ASSERT_TRUE(rows) << rows.error().context;
  for (const CompareRow& row : *rows) {
    EXPECT_EQ(static_cast<double>(row.staleness_max), row.eta);
    EXPECT_EQ(row.wasted, 0);
    EXPECT_EQ(row.groups_evicted, 0U);
    EXPECT_EQ(row.bias, 1);
    EXPECT_EQ(row.groups_trained, 16U * 8);
  }
}

TEST(Compare, AggregateIsFasterAndExceedsTheBound) {
  const auto rows = rows_of(compare_options({"exact", "aggregate"}, {2}));
  ASSERT_TRUE(rows);
  const CompareRow& aggregate = row_of(*rows, "aggregate");
  EXPECT_GT(aggregate.staleness_max, 2);
  EXPECT_EQ(aggregate.wasted, 0);
  EXPECT_LT(aggregate.seconds, row_of(*rows, "exact").seconds);
}

TEST(Compare, DropAndWindowWasteLongResponses) {
  const auto rows = rows_of(compare_options({"exact", "drop", "window"}, {1}));
  ASSERT_TRUE(rows);
  for (const char* policy : {"drop", "window"}) {
    const CompareRow& row = row_of(*rows, policy);
    EXPECT_LE(row.staleness_max, 1) << policy;
    EXPECT_GT(row.groups_evicted, 0U) << policy;
    EXPECT_GT(row.wasted, 0) << policy;
    EXPECT_LT(row.bias, 1) << policy;
    EXPECT_LT(row.trained_length, row_of(*rows, "exact").trained_length) << policy;
  }
}

TEST(Compare, LosslessRulesTrainTheSameResponses) {
  const auto rows = rows_of(compare_options({"exact", "sync", "aggregate", "count", "wait"}, {2}));
  ASSERT_TRUE(rows);
  for (const CompareRow& row : *rows) {
    EXPECT_EQ(row.trained_length, rows->front().trained_length) << row.policy;
    EXPECT_EQ(row.trained_length, row.generated_length) << row.policy;
  }
}

TEST(Compare, SyncRunsOnceAndFirst) {
  const auto rows = rows_of(compare_options({"exact", "sync"}, {2, 1}));
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ((*rows)[0].policy, "sync");
  EXPECT_EQ((*rows)[0].eta, 0);
  EXPECT_EQ((*rows)[0].staleness, "0:128");
  EXPECT_EQ((*rows)[1].eta, 2);
  EXPECT_EQ((*rows)[2].eta, 1);
}

TEST(Compare, StepsOverrideTheFile) {
  CompareOptions o = compare_options({"exact"}, {1});
  o.steps = 5;
  const auto rows = rows_of(o);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().updates, 5U);
}

TEST(Compare, EqualSeedsGiveEqualTablesOnAnyNumberOfThreads) {
  CompareOptions o = compare_options({}, {1, 2});
  const auto one = rows_of(o);
  o.simulate.threads = 3;
  const auto three = rows_of(o);
  o.sets = {"seed=99"};
  const auto other = rows_of(o);
  ASSERT_TRUE(one && three && other);
  const auto csv = [](const std::vector<CompareRow>& rows) {
    return to_csv(std::span<const CompareRow>(rows));
  };
  EXPECT_EQ(csv(*one), csv(*three));
  EXPECT_NE(csv(*one), csv(*other));
}

TEST(Compare, TheTableShowsTheReasonOfARefusedRun) {
  const auto done = compare(compare_options({"aggregate", "drop"}, {0.5}));
  EXPECT_FALSE(done);  // drop takes whole bounds
  const auto whole = compare(compare_options({"aggregate", "drop"}, {0}));
  ASSERT_TRUE(whole) << whole.error().context;
  const CompareRow& drop = row_of(whole->rows, "drop");
  EXPECT_EQ(row_of(whole->rows, "aggregate").end, CompareEnd::Ran);
  EXPECT_EQ(drop.end, CompareEnd::NotRun);
  EXPECT_NE(drop.reason.find("at least 1 for `drop`"), std::string::npos);
  const std::string text = compare_text(*whole);
  EXPECT_NE(text.find("not run\n  drop 0: staleness.bound"), std::string::npos) << text;
}

TEST(Compare, FractionalBoundsWorkWhereAllowed) {
  const auto rows = rows_of(compare_options({"aggregate"}, {0.5}));
  ASSERT_TRUE(rows) << rows.error().context;
  EXPECT_EQ(rows->front().end, CompareEnd::Ran);
  EXPECT_EQ(rows->front().eta, 0.5);
}

TEST(Compare, TheTableMatchesTheGoldenFile) {
  const auto done = compare(compare_options({}, {1, 2}));
  ASSERT_TRUE(done);
  const std::string text = compare_text(*done);
  const auto path = fs::path(TEMPER_SOURCE_DIR) / "tests/golden/compare/small.txt";
  if (std::getenv("TEMPER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, text));
    return;
  }
  EXPECT_EQ(text, read_file(path).value()) << path << " is stale; TEMPER_UPDATE_GOLDEN=1";
}

TEST(Compare, TheTableShowsMeansOverSeeds) {
  CompareOptions o = compare_options({"exact"}, {1, 2});
  o.seeds = {7, 8};
  const auto both = compare(o);
  ASSERT_TRUE(both) << both.error().context;
  ASSERT_EQ(both->rows.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(both->rows[i].eta, i < 2 ? 1 : 2);
    EXPECT_EQ(both->rows[i].seed, i % 2 == 0 ? 7U : 8U);
    CompareOptions alone = compare_options({"exact"}, {both->rows[i].eta});
    alone.sets = {fmt::format("seed={}", both->rows[i].seed)};
    const auto rows = rows_of(alone);
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->front().seconds, both->rows[i].seconds);
  }
  const double a = both->rows[0].seconds, b = both->rows[1].seconds;
  ASSERT_NE(a, b);
  const std::string text = compare_text(*both);
  EXPECT_NE(text.find(fmt::format(
                "{:.1f} ({:.1f}..{:.1f})", (a + b) / 2, std::min(a, b), std::max(a, b))),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("means over 2 seeds"), std::string::npos) << text;
}

TEST(Compare, VariedKeysAppearInTheTableAndThePlot) {
  CompareOptions o = compare_options({"sync", "exact"}, {1});
  o.vary = {parse_axis("--vary", "rollout.concurrency=16,64").value()};
  const auto done = compare(o);
  ASSERT_TRUE(done) << done.error().context;
  ASSERT_EQ(done->rows.size(), 4U);
  EXPECT_EQ(done->rows[0].vary, "rollout.concurrency=16");
  EXPECT_EQ(done->rows[3].vary, "rollout.concurrency=64");
  EXPECT_GT(done->rows[2].seconds, done->rows[3].seconds);
  const std::string text = compare_text(*done);
  EXPECT_TRUE(text.starts_with("| policy | eta |         varied |")) << text;
  const std::string svg = compare_svg(*done, "title");
  for (const char* words :
       {">sync concurrency=16<", ">exact concurrency=64<", ">time, sync 0 concurrency=16 = 1<"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  EXPECT_FALSE(rewards_svg(*done, RewardAxis::Steps, "nothing learns"));
}

template <class Change>
std::string compare_error(Change change) {
  cli::CompareOptions command;
  command.config = long_tailed_file();
  change(command);
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_compare(command, out, err), 2);
  EXPECT_EQ(out.str(), "");
  return err.str();
}

TEST(CompareCommand, RefusesWrongFlagsByName) {
  using C = cli::CompareOptions;
  EXPECT_EQ(compare_error([](C& c) { c.policies = {"exakt"}; }),
            "temper: --policies exakt: did you mean `exact`?\n");
  EXPECT_EQ(compare_error([](C& c) {
              c.policies = {"exact", "exact"};
            }),
            "temper: --policies: `exact` is given twice\n");
  for (const char* wrong : {"", "two", "-1", "1025", "nan", "1x"}) {
    EXPECT_EQ(
        compare_error([&](C& c) { c.etas = {wrong}; }),
        std::string("temper: --eta: expected numbers from 0 to 1024, found `") + wrong + "`\n");
  }
  EXPECT_EQ(compare_error([](C& c) {
              c.etas = {"1", "1.0"};
            }),
            "temper: --eta: 1 is given twice\n");
  EXPECT_EQ(compare_error([](C& c) { c.etas = {}; }),
            "temper: --eta: expected at least one bound\n");
  EXPECT_EQ(compare_error([](C& c) {
              c.etas = {"1", "2.5"};
            }),
            "temper: --eta 2.5: `exact` takes whole numbers; did you mean 2 or 3?\n");
  EXPECT_EQ(compare_error([](C& c) {
              c.seeds = {"1", "x"};
            }),
            "temper: --seeds: expected whole numbers from 0, found `x`\n");
  EXPECT_EQ(compare_error([](C& c) {
              c.seeds = {"1", "1"};
            }),
            "temper: --seeds: 1 is given twice\n");
  EXPECT_EQ(
      compare_error([](C& c) { c.sets = {"staleness.bound=3"}; }),
      "temper: --set staleness.bound=3: staleness.bound is set by --policies and --eta; remove "
      "it\n");
  EXPECT_EQ(compare_error([](C& c) { c.sets = {"seed=3"}, c.seeds = {"1"}; }),
            "temper: --set seed=3: seed is set by --seeds; remove it\n");
  EXPECT_NE(compare_error([](C& c) { c.sets = {"sed=3"}; }).find("did you mean"),
            std::string::npos);
  EXPECT_NE(compare_error([](C& c) { c.config = "/nowhere.yaml"; }).find("/nowhere.yaml"),
            std::string::npos);
}

TEST(CompareCommand, RefusesInvalidVariations) {
  using C = cli::CompareOptions;
  const auto error = [](std::vector<std::string> vary) {
    return compare_error([&](C& c) { c.vary = std::move(vary); });
  };
  EXPECT_EQ(error({"rollout.concurency=1,2"}),
            "temper: --vary rollout.concurency=1: rollout.concurency: unknown key; did you mean "
            "`concurrency`?\n");
  EXPECT_EQ(error({"rollout.concurrency=1,many"}),
            "temper: --vary rollout.concurrency=many: rollout.concurrency: expected an integer, "
            "found `many`\n");
  EXPECT_EQ(error({"rollout.concurrency"}),
            "temper: --vary rollout.concurrency: expected key=value,value or "
            "key+key=value/value,...\n");
  EXPECT_EQ(error({"rollout.concurrency=8,8"}),
            "temper: --vary rollout.concurrency: 8 is given twice\n");
  EXPECT_EQ(
      error({"staleness.bound=1,2"}),
      "temper: --vary staleness.bound: staleness.bound is set by --policies and --eta; remove "
      "it\n");
  EXPECT_EQ(error({"steps=3,4", "steps=5"}),
            "temper: --vary steps: steps is already set by --vary; remove it\n");
}

TEST(CompareCommand, ResumesOnlyWhatLeavesSomethingToGoOnFrom) {
  EXPECT_EQ(
      compare_error([](cli::CompareOptions& c) { c.resume = true; }),
      "temper: --resume: expected hardware: local; simulated runs leave no folders to resume, so "
      "start the comparison again without --resume\n");
}

TEST(CompareCommand, WritesTheTableAndAPlotWithALinePerRule) {
  cli::CompareOptions command;
  command.config = long_tailed_file();
  command.policies = {"sync", "exact", "drop"};
  command.etas = {"2", "0", "1"};
  command.out = test::temporary_file("compare_out");
  std::ostringstream out, err;
  ASSERT_EQ(cli::run_compare(command, out, err), 0) << err.str();
  const std::string csv = read_file(fs::path(command.out) / "compare.csv").value();
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 1 + 3 * 2);
  EXPECT_TRUE(csv.starts_with("policy,eta,vary,seed,end,updates,seconds,trained_per_s"));
  const std::string svg = read_file(fs::path(command.out) / "compare.svg").value();
  for (const char* words :
       {">sync<", ">exact<", ">drop<", ">time, sync 0 = 1<", ">tokens wasted, %<", ">eta<"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  const std::string markdown = read_file(fs::path(command.out) / "compare.md").value();
  const std::string title = "staleness rules\n\n";  // then the table that was printed first
  const std::size_t table = markdown.find(title);
  ASSERT_NE(table, std::string::npos) << markdown;
  EXPECT_TRUE(out.str().starts_with(markdown.substr(table + title.size()))) << markdown;
  command.json = true;
  std::ostringstream json;
  ASSERT_EQ(cli::run_compare(command, json, err), 0);
  EXPECT_NE(json.str().find("\"policy\": \"drop\""), std::string::npos) << json.str();
}

}  // namespace
}  // namespace temper::study
