// What a page draws over time: columns of metrics, and the time line.
#include "cli/serve/series.hpp"

#include "cli/serve/run_files.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/json_document.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace temper::cli {
namespace {

orchestrator::FlatMetrics line(double step, double value) {
  return {{"step", step}, {"time", step * 2}, {"reward", value}};
}

TEST(Series, AShortRunIsKeptWhole) {
  Series series;
  for (int i = 1; i <= 5; ++i)
    series.add(line(i, i * 0.5));
  EXPECT_EQ(series.stride(), 1U);
  EXPECT_EQ(parse_json_or_throw(series.to_json(0)).at("series").at("reward").at("mean").dump(),
            "[0.5,1,1.5,2,2.5]");
}

TEST(Series, ALongRunKeepsItsEndsInBoundedMemory) {
  Series series;
  for (int i = 1; i <= 100000; ++i)
    series.add(line(i, i == 777 ? -9 : i % 2));
  EXPECT_LE(series.points(), Series::kPoints);
  EXPECT_EQ(series.updates(), 100000U);
  const auto json = parse_json_or_throw(series.to_json(0));
  const auto& reward = json.at("series").at("reward");
  EXPECT_EQ(*std::ranges::min_element(reward.at("min")), -9);
  EXPECT_EQ(reward.at("mean").back(), 0.5);
  EXPECT_EQ(json.at("step").back(), 100000);
}

TEST(Series, WhatAnUpdateDoesNotHaveIsNoNumber) {
  Series series;
  series.add({{"step", 1}, {"held", 0.5}});
  series.add({{"step", 2}});
  series.add({{"step", 3}, {"held", 0}});
  EXPECT_NE(series.to_json(0).find(R"("held":{"n":1,"mean":[0.5,null,0]})"), std::string::npos)
      << series.to_json(0);
}

TEST(Series, ARunThatWentBackLosesWhatWasAfter) {
  Series series;
  for (const double step : {1.0, 2.0, 3.0, 4.0, 3.0})
    series.add(line(step, step));
  EXPECT_EQ(parse_json_or_throw(series.to_json(0)).at("step").dump(), "[1,2,3]");
}

TEST(Series, ValuesBeyondAFloatAreNumbersInTheAnswer) {
  Series series;
  for (int i = 1; i <= 5000; ++i)
    series.add(line(i, i % 2 == 0 ? 1e300 : 3e38));
  const auto json = parse_json_or_throw(series.to_json(0));
  for (const auto& mean : json.at("series").at("reward").at("mean"))
    EXPECT_GT(mean.get<double>(), 2.9e38);
}

TEST(RunFiles, TheTimeLineIsAnsweredAtTheFinestLevelThatIsSmall) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "timeline");
  const auto block = [](int begin, int end) {
    return fmt::format(R"({{"b":{},"e":{},"names":[["idle",""]],"t":[[0,{},{},0]]}})"
                       "\n",
                       begin,
                       end,
                       begin,
                       end - begin);
  };
  ASSERT_TRUE(write_file_atomically(folder / "timeline/0.jsonl", block(90000, 100000)));
  ASSERT_TRUE(
      write_file_atomically(folder / "timeline/1.jsonl", block(0, 6000) + block(6000, 12500)));
  ASSERT_TRUE(write_file_atomically(folder / "timeline/2.jsonl", block(0, 1562)));
  const RunFiles run("a", folder.path());
  const auto asked = [&](double from, double to) {
    return parse_json_or_throw(run.timeline(from, to));
  };
  EXPECT_EQ(asked(0, 100).at("level"), 1);  // level 0 does not reach back so far
  EXPECT_EQ(asked(0, 100).at("blocks").size(), 2U);
  EXPECT_EQ(asked(60, 62).at("blocks").size(), 1U);
  EXPECT_EQ(asked(95, 96).at("level"), 0);
  EXPECT_EQ(asked(0, 3000).at("level"), 2);  // finer than a screen shows
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(asked(0, kInfinity).at("blocks").size(), 1U);
  EXPECT_EQ(asked(kInfinity, kInfinity).at("blocks").size(), 0U);
  EXPECT_EQ(asked(std::nan(""), 3000).at("level"), 2);
}

}  // namespace
}  // namespace temper::cli
