// The audit of summary.json, whose contents are untrusted.
#include "orchestrator/record/summary_audit.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace temper::orchestrator {
namespace {

class SummaryAudit : public ::testing::Test {
 protected:
  std::vector<std::string> violations(const std::string& summary) {
    EXPECT_TRUE(write_file_atomically(folder_ / "summary.json", summary));
    return audit_times(folder_ / "summary.json",
                       {std::chrono::seconds(3), Time(std::chrono::seconds(10))});
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
  EXPECT_EQ(audit_times(folder_ / "summary.json", {}), std::vector<std::string>());
}

TEST_F(SummaryAudit, ATailIsNotComparedWithALogThatWentOn) {
  std::string summary = good_;
  summary.replace(summary.find("\"s\": 1.0"), 8, "\"tail\": true, \"s\": 1.0");
  summary.replace(summary.size() - 1, 1, R"(, "tail": {"s": 3, "waits_s": 1, "decode_s": 5}})");
  ASSERT_TRUE(write_file_atomically(folder_ / "summary.json", summary));
  const auto said = [&](int tail, int end) {
    return audit_times(folder_ / "summary.json",
                       {std::chrono::seconds(tail), Time(std::chrono::seconds(end))});
  };
  EXPECT_EQ(said(3, 10).size(), 0U);
  EXPECT_EQ(said(4, 10).size(), 1U);
  EXPECT_EQ(said(4, 11).size(), 0U) << "the run was resumed, and killed before another summary";
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

TEST_F(SummaryAudit, TheTailIsThatOfTheLogAndItsWaitsAreNamed) {
  const auto with_tail = [this](double s, double waits, double decode) {
    std::string summary = good_;
    summary.replace(summary.find("\"s\": 1.0"), 8, "\"tail\": true, \"s\": 1.0");
    summary.pop_back();
    return violations(
        summary +
        fmt::format(R"(, "tail": {{"s": {}, "waits_s": {}, "decode_s": {}}}}})", s, waits, decode));
  };
  EXPECT_EQ(with_tail(3, 1, 5), std::vector<std::string>());
  const std::tuple<double, double, double, const char*> wrong[] = {
      {2.9, 1, 1, "took 2.900000 s, but 3.000000 s in the log"},
      {3, 0.9, 1, "waited 0.900000 s in tails, but 1.000000 s by cause"},
      {3, 1, 5.1, "6.100000 s of card time in 6.000000 s"}};
  for (const auto& [s, waits, decode, words] : wrong) {
    const auto found = with_tail(s, waits, decode);
    ASSERT_EQ(found.size(), 1U) << words;
    EXPECT_NE(found.front().find(words), std::string::npos) << found.front();
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
