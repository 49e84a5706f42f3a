#include "core/text/numbers.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper {
namespace {

TEST(Numbers, FormatsSharesAsPercent) {
  EXPECT_EQ(percent_text(0.9352, 0), "94 %");
  EXPECT_EQ(percent_text(0.9352, 1), "93.5 %");
  EXPECT_EQ(percent_text(-0.5, 2), "-50.00 %");
}

TEST(Numbers, ShortNumbersHaveThreeSignificantDigits) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(842), "842");
  EXPECT_EQ(short_number(999.5), "1.00k");
  EXPECT_EQ(short_number(1254), "1.25k");
  EXPECT_EQ(short_number(12340), "12.3k");
  EXPECT_EQ(short_number(125400), "125k");
  EXPECT_EQ(short_number(4.5e6), "4.50M");
  EXPECT_EQ(short_number(125e6), "125M");
  EXPECT_EQ(short_number(7), "7");
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(1234), "1.23k");
  EXPECT_EQ(short_number(21430), "21.4k");
  EXPECT_EQ(short_number(999600), "1.00M");
}

TEST(Numbers, ThousandsKeepTheirSuffixAtAnySize) {
  EXPECT_EQ(thousands_text(12345, 1), "12.3k");
  EXPECT_EQ(thousands_text(45, 1), "0.0k");
  EXPECT_EQ(significant_thousands(12000), "12k");
  EXPECT_EQ(significant_thousands(12345), "12.35k");
}

TEST(Numbers, BytesAreInDecimalUnits) {
  EXPECT_EQ(bytes_text(499), "0 kB");
  EXPECT_EQ(bytes_text(12000), "12 kB");
  EXPECT_EQ(bytes_text(1.5e6), "1.5 MB");
  EXPECT_EQ(bytes_text(3.2e12), "3.2 TB");
  EXPECT_EQ(bytes_text(2e15), "2.0 PB");
}

TEST(Numbers, ParsesOnlyWholeTexts) {
  EXPECT_EQ(*parse_number<int>("-12"), -12);
  EXPECT_EQ(*parse_number<std::int64_t>("9007199254740993"), 9007199254740993);
  EXPECT_EQ(*parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(*parse_number<double>("1e-3"), 1e-3);
  EXPECT_TRUE(std::isinf(*parse_number<double>("inf")));
  for (const char* text : {"", " 1", "1 ", "+1", "1.5", "1x", "99999999999"}) {
    const auto value = parse_number<int>(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().context, "expected a number, found `" + std::string(text) + "`");
  }
}

}  // namespace
}  // namespace temper
