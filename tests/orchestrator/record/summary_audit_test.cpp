// The audit of summary.json, whose contents are untrusted.
#include "orchestrator/record/summary_audit.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <string>

namespace temper::orchestrator {
namespace {

class SummaryAudit : public ::testing::Test {
 protected:
  std::vector<std::string> violations(const std::string& summary) {
    EXPECT_TRUE(write_file_atomically(folder_ / "summary.json", summary));
    return audit_times(folder_ / "summary.json");
  }
  const test::TemporaryFolder folder_;
  /// Two cards, ten seconds.
  const std::string good_ =
      R"({"utilization": {"wall_ns": 10000000000, "per_card": [)"
      R"({"states_ns": {"decode": 9000000000, "idle": 1000000000}},)"
      R"({"states_ns": {"train": 8000000000, "down": 2000000000}}]},)"
      R"("waits": [{"state": "idle", "s": 1.0}, {"state": "down", "s": 2.0}]})";
};

TEST_F(SummaryAudit, StatesThatSumToTheWallAndWaitsThatSumToTheirStatesAreWhole) {
  EXPECT_EQ(violations(good_), std::vector<std::string>());
}

TEST_F(SummaryAudit, WhereThereIsNoneNothingIsWrong) {
  EXPECT_EQ(audit_times(folder_ / "summary.json"), std::vector<std::string>());
}

TEST_F(SummaryAudit, AnotherShapeIsAViolationThatSaysWhere) {
  const std::pair<const char*, const char*> changed[] = {
      {"state\": \"idle\", \"s\"", "staTe\": \"idle\", \"s\""},
      {"\"s\": 1.0", "\"s\": \"1.0\""},
      {"\"wall_ns\": 10000000000", "\"wall_ns\": 1e300"},
      {"9000000000", "9.5"},
      {"9000000000", "18446744073709551615"},
      {"\"per_card\"", "\"per_Card\""}};
  for (const auto& [from, to] : changed) {
    std::string other = good_;
    other.replace(other.find(from), std::string_view(from).size(), to);
    const auto found = violations(other);
    ASSERT_FALSE(found.empty()) << to;
    EXPECT_NE(found.front().find("summary.json"), std::string::npos) << found.front();
  }
}

TEST_F(SummaryAudit, NoByteInWhichABitIsFlippedMakesItThrow) {
  for (std::size_t byte = 0; byte < good_.size(); ++byte) {
    std::string other = good_;
    other[byte] = static_cast<char>(other[byte] ^ (1 << byte % 8));
    EXPECT_NO_THROW(violations(other)) << byte;
  }
}

}  // namespace
}  // namespace temper::orchestrator
