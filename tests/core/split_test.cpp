#include "core/split.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Split, GivesOnePartMoreThanThereAreSeparators) {
  EXPECT_EQ(split("a, b,, c", ", "), (Parts{"a", "b,", "c"}));
  EXPECT_EQ(split("a;;b;", ";"), (Parts{"a", "", "b", ""}));
  EXPECT_EQ(split("", ";"), (Parts{""}));
}

TEST(Split, LinesEndAtLineBreaks) {
  EXPECT_EQ(lines_of("a\n\nb\n"), (Parts{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\nb"), (Parts{"a", "b"}));
  EXPECT_EQ(lines_of("\n"), (Parts{""}));
  EXPECT_EQ(lines_of(""), Parts{});
}

TEST(Split, TrimmedTextHasNoWhiteSpaceAround) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
}

}  // namespace
}  // namespace temper
