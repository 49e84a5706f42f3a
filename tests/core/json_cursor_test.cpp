#include "core/json_cursor.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace temper {
namespace {

std::vector<std::int64_t> integers(JsonCursor& json) {
  std::vector<std::int64_t> all;
  json.array([&] { all.push_back(json.integer()); });
  return all;
}

TEST(JsonCursor, ReadsRequestedValuesAndSkipsTheRest) {
  JsonCursor json(
      R"( {"a": {"x": [1, "]", {"y": "\\"}]}, "b": [3, -4] , "c": true, "d": -2.5e-1} )");
  std::vector<std::int64_t> b;
  double d = 0;
  json.object([&](std::string_view key) {
    if (key == "b") {
      b = integers(json);
    } else if (key == "d") {
      d = json.number();
    } else {
      json.skip();
    }
  });
  EXPECT_TRUE(json.whole());
  EXPECT_EQ(b, (std::vector<std::int64_t>{3, -4}));
  EXPECT_EQ(d, -0.25);
}

TEST(JsonCursor, ReadsEmptyObjectsAndArrays) {
  JsonCursor json(R"({"a":[],"b":{}})");
  int members = 0;
  json.object([&](std::string_view key) {
    ++members;
    key == "a" ? json.array([&] { json.skip(); }) : json.object([&](auto) { json.skip(); });
  });
  EXPECT_TRUE(json.whole());
  EXPECT_EQ(members, 2);
}

TEST(JsonCursor, HandlesEscapedQuotes) {
  JsonCursor json(R"(["a\"b", "c\\", ""])");
  std::vector<std::string> texts;
  json.array([&] { texts.emplace_back(json.text()); });
  EXPECT_TRUE(json.whole());
  EXPECT_EQ(texts, (std::vector<std::string>{R"(a\"b)", R"(c\\)", ""}));
}

TEST(JsonCursor, ConsumesANull) {
  JsonCursor json("[null,7]");
  int nulls = 0;
  json.array([&] { json.null() ? ++nulls : static_cast<int>(json.integer()); });
  EXPECT_TRUE(json.whole());
  EXPECT_EQ(nulls, 1);
}

/// Each text is invalid as an array of integers.
TEST(JsonCursor, RejectsTruncatedOrOtherInput) {
  for (const char* const text : {"",
                                 "[",
                                 "[1",
                                 "[1,",
                                 "[1,]",
                                 "[1}",
                                 "[1]]",
                                 "{}",
                                 "[1.5]",
                                 "[1e3]",
                                 "[\"1\"]",
                                 "[99999999999999999999]",
                                 "[-]",
                                 "[1 2]",
                                 "nul"}) {
    JsonCursor json(text);
    integers(json);
    EXPECT_FALSE(json.whole()) << text;
  }
}

TEST(JsonCursor, ChecksBracketsAndQuotesOfSkippedValues) {
  for (const char* const text :
       {"{\"a\":[}", "{\"a\":[}]}", "{\"a\":\"b}", "{\"a\"}", "{\"a\":}", "{a:1}"}) {
    JsonCursor json(text);
    json.object([&](std::string_view) { json.skip(); });
    EXPECT_FALSE(json.whole()) << text;
  }
  const std::string brackets(1000, '[');
  JsonCursor deep(brackets);
  deep.skip();
  EXPECT_FALSE(deep.good());
}

TEST(JsonCursor, StopsCallbacksAfterTheFirstMismatch) {
  JsonCursor json("[1,x,3,4]");
  EXPECT_EQ(integers(json).size(), 2U);
  EXPECT_FALSE(json.good());
}

}  // namespace
}  // namespace temper
