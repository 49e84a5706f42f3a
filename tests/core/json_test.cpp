#include "core/json.hpp"

#include "core/json_document.hpp"
#include "tests/core/sample_types.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

namespace temper {
namespace {

using namespace std::chrono_literals;

TEST(Json, WritesOneLineOrPretty) {
  const test::Small value{Tokens(3), test::Shape::Square};
  EXPECT_EQ(to_json(value), R"({"tokens":3,"shape":"square"})");
  EXPECT_EQ(to_json(value, JsonStyle::Pretty), "{\n  \"tokens\": 3,\n  \"shape\": \"square\"\n}");
  EXPECT_EQ(to_json(std::vector<std::int32_t>{}, JsonStyle::Pretty), "[]");
  EXPECT_EQ(to_json(std::map<std::string, int>{{"a", 1}, {"b", 2}}), R"({"a":1,"b":2})");
  EXPECT_EQ(to_json(test::Either(test::Nothing{})), R"({"nothing":{}})");
}

TEST(Json, DurationsAreExactSeconds) {
  EXPECT_EQ(to_json(Duration(1500ms)), "1.5");
  EXPECT_EQ(to_json(Duration(0)), "0");
  EXPECT_EQ(to_json(Duration(-1)), "-0.000000001");
  EXPECT_EQ(to_json(Duration::max()), "9223372036.854775807");
  EXPECT_EQ(to_json(Duration::min()), "-9223372036.854775808");
  EXPECT_EQ(to_json(Time(2s)), "2");
}

TEST(Json, NumbersAreShortestAndNeverInvalid) {
  EXPECT_EQ(to_json(0.1), "0.1");
  EXPECT_EQ(to_json(1e-8), "1e-08");
  EXPECT_EQ(to_json(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(to_json(std::numeric_limits<float>::quiet_NaN()), "null");
  EXPECT_EQ(to_json(std::optional<int>{}), "null");
  EXPECT_EQ(to_json(UINT64_MAX), "18446744073709551615");
}

TEST(Json, TextIsEscapedAndBadBytesReplaced) {
  EXPECT_EQ(to_json(std::string("a\"\n\x01")), R"("a\"\n\u0001")");
  EXPECT_TRUE(nlohmann::json::accept(to_json(std::string("a\xff\xc0z"))));
}

TEST(Json, RandomValuesAreValidJson) {
  Random rng(1, "json");
  for (int i = 0; i < 200; ++i) {
    const test::Everything value = test::random_everything(rng);
    const auto parsed = nlohmann::json::parse(to_json(value), nullptr, false);
    ASSERT_FALSE(parsed.is_discarded());
    EXPECT_EQ(parsed, nlohmann::json::parse(to_json(value, JsonStyle::Pretty)));
    EXPECT_EQ(parsed["big"].get<std::uint64_t>(), value.big);
    EXPECT_EQ(parsed["number"].get<double>(), value.number);
    EXPECT_EQ(parsed["text"].get<std::string>(), value.text);
    EXPECT_EQ(parsed["tokens"].get<std::vector<std::int32_t>>(), value.tokens);
    EXPECT_EQ(parsed["rows"].size(), value.rows.size());
  }
}

TEST(JsonDocument, IsNotEndedByANulByte) {
  for (const std::string_view text : {R"({"a":1}0)",
                                      R"({"a":1}00:0.00})",
                                      R"({"a":1}0
)",
                                      R"({"a":1} 0)",
                                      R"({"a":10})",
                                      R"({"a"0:1})",
                                      R"({"0a":1})",
                                      R"({"a":"0"})",
                                      R"({0"a":1})",
                                      R"(0{"a":1})",
                                      "[]0",
                                      "null0",
                                      "10",
                                      "0"}) {
    std::string bytes(text);
    std::ranges::replace(bytes, '0', '\0');
    EXPECT_TRUE(parse_json(bytes).is_discarded()) << text;
    EXPECT_THROW(parse_json_or_throw(bytes), nlohmann::json::parse_error) << text;
  }
}

}  // namespace
}  // namespace temper
