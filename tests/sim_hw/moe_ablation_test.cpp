// The ablation of MoE mechanisms, and that docs/moe_mechanisms.md has it.
#include "sim_hw/validation/moe_ablation.hpp"

#include "core/files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace temper::sim_hw {
namespace {

class MoeAblation : public testing::Test {
 protected:
  Catalog catalog_ = Catalog::shipped();
  Result<std::vector<AblationRow>> rows_ = moe_ablation(catalog_);
};

// docs/moe_mechanisms.md holds the table between two marks; TEMPER_UPDATE_GOLDEN=1 rewrites it.
TEST_F(MoeAblation, InTheDocsIsUpToDate) {
  ASSERT_TRUE(rows_) << rows_.error().context;
  const std::string table = ablation_markdown(*rows_);
  const std::string path = std::string(TEMPER_SOURCE_DIR) + "/docs/moe_mechanisms.md";
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

TEST_F(MoeAblation, HasEveryPublishedGainBesideAPrediction) {
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
