// The ablation of MoE mechanisms, and its documented table.
#include "sim_hw/ablation/ablation.hpp"

#include "core/files.hpp"
#include "sim_hw/parallel/recorded_traces.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace temper::sim_hw {
namespace {

class MoeAblation : public testing::Test {
 protected:
  Catalog catalog_ = Catalog::shipped();
  Result<std::vector<AblationRow>> rows_ = moe_ablation(catalog_);
};

// The page has the table between two marks; TEMPER_UPDATE_GOLDEN=1 rewrites it.
TEST_F(MoeAblation, DocumentedTableIsUpToDate) {
  ASSERT_TRUE(rows_) << rows_.error().context;
  const std::string table = ablation_markdown(*rows_);
  const std::string path = std::string(TEMPER_SOURCE_DIR) + "/docs/reports/moe-mechanisms.md";
  const std::string text = read_file(path).value();
  const std::string begin = "<!-- table -->\n", end = "<!-- end of table -->";
  const auto from = text.find(begin) + begin.size(), to = text.find(end);
  ASSERT_LE(from, to);
  ASSERT_NE(to, std::string::npos);
  if (const char* update = std::getenv("TEMPER_UPDATE_GOLDEN"); update && *update == '1') {
    ASSERT_TRUE(write_file_atomically(path, text.substr(0, from) + table + text.substr(to)));
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), table)
      << path << " is stale; TEMPER_UPDATE_GOLDEN=1 rewrites it";
}

TEST_F(MoeAblation, ComparesEveryPublishedGainWithAPrediction) {
  ASSERT_TRUE(rows_) << rows_.error().context;
  // Twice the all-to-all (two ways), 98 %, half the memory, +25.5 % (two loads), +72.6 %, -70 %,
  // +20 %, +5 % and +4 % (two batches each), merged and operators +15 %, tokens/s, MFU.
  int published = 0;
  for (const AblationRow& row : *rows_) {
    published += row.published ? 1 : 0;
    EXPECT_FALSE(row.why.empty()) << row.mechanism;
    EXPECT_FALSE(row.conditions.empty()) << row.mechanism;
  }
  EXPECT_EQ(published, 17);
}

std::string file(const std::string& name, const std::string& text) {
  const std::string path = test::temporary_file(name);
  std::ofstream(path) << text;
  return path;
}

TEST(RecordedTraces, AreReadAndScaled) {
  const auto loads = read_expert_loads(file("loads.csv", "a,b\n30,10\n1,3\n"), 2);
  ASSERT_TRUE(loads) << loads.error().context;
  EXPECT_EQ(*loads, (std::vector<ExpertLoads>{{0.75, 0.25}, {0.25, 0.75}}));
  const auto samples = read_samples(file("samples.csv", "sample,length\n0,3\n0,4\n1,5\n"), 8);
  ASSERT_TRUE(samples) << samples.error().context;
  EXPECT_EQ(*samples, (std::vector<double>{9 + 16, 25}));
}

TEST(RecordedTraces, NameTheLineAndTheProblem) {
  const auto refused = [](const auto& result, const char* text) {
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().context.find(text), std::string::npos) << result.error().context;
  };
  refused(read_expert_loads(file("few.csv", "a,b\n1,2\n"), 4),
          "found 2 columns, expected one per expert of the model: 4");
  refused(read_expert_loads(file("none.csv", "a,b\n1,1\n0,0\n"), 2), "none.csv:3: all loads are 0");
  refused(read_expert_loads(file("less.csv", "a,b\n1,-1\n"), 2),
          "less.csv:2: expected a number of 0 or more, found `-1`");
  refused(read_samples(file("column.csv", "sample\n1\n"), 8),
          "expected the columns `sample` and `length`");
  refused(read_samples(file("long.csv", "sample,length\n7,5\n7,4\n"), 8),
          "long.csv:3: sample 7 has 9 tokens, and a sequence 8");
  Catalog catalog = Catalog::shipped();
  refused(moe_ablation(catalog, {"", file("short.csv", "sample,length\n1,5\n")}),
          "found 1 samples, expected at least 48 replicas x 2 each; nearest: 96");
}

TEST_F(MoeAblation, TakesRecordedLoads) {
  // Equally loaded experts need no balancing: E gains nothing.
  std::string head, row;
  for (int e = 0; e < 256; ++e) {
    head += (e > 0 ? "," : "") + std::string("e") + std::to_string(e);
    row += e > 0 ? ",1" : "1";
  }
  const auto rows =
      moe_ablation(catalog_, {file("even.csv", head + "\n" + row + "\n" + row + "\n"), ""});
  ASSERT_TRUE(rows) << rows.error().context;
  for (const AblationRow& each : *rows) {
    if (each.mechanism.starts_with("EDPB, E")) {
      EXPECT_DOUBLE_EQ(each.predicted, 0);
    }
  }
}

TEST(Agreement, IsWithinATenthOfThePublishedEffect) {
  AblationRow row;
  row.published = 0.2;
  row.predicted = 0.21;
  EXPECT_EQ(row.agreement(), Agreement::Agrees);
  row.predicted = 0.23;
  EXPECT_EQ(row.agreement(), Agreement::PredictsMore);
  row.input = AblationInput::Assumed;
  EXPECT_EQ(row.agreement(), Agreement::Open);
  row.input = AblationInput::Published;
  row.published = -0.7;
  row.predicted = -0.5;
  EXPECT_EQ(row.agreement(), Agreement::PredictsLess);
  row.published = std::nullopt;
  EXPECT_EQ(row.agreement(), Agreement::NothingPublished);
}

}  // namespace
}  // namespace temper::sim_hw
