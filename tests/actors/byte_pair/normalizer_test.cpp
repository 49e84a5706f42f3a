#include "actors/byte_pair/normalizer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace temper::actors {
namespace {

using nlohmann::json;

const json kPrepend = {{"type", "Prepend"}, {"prepend", "\u2581"}};
const json kToMark = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};

std::string normalized(const json& section, std::string_view text) {
  const auto made = Normalizer::parse({section, "normalizer"});
  return made ? made->apply(text) : made.error().context;
}

TEST(Normalizer, AppliesItsStepsInOrder) {
  const json llama2 = {{"type", "Sequence"}, {"normalizers", {kPrepend, kToMark}}};
  EXPECT_EQ(normalized(llama2, "a  b "), "\u2581a\u2581\u2581b\u2581");
  EXPECT_EQ(normalized(kToMark, " a"), "\u2581a");
  EXPECT_EQ(normalized({{"type", "NFC"}}, "e\u0301"), "\u00e9");
  EXPECT_EQ(normalized(nullptr, "e\u0301 "), "e\u0301 ");
}

TEST(Normalizer, PrependsNothingToAnEmptyText) {
  EXPECT_EQ(normalized(kPrepend, ""), "");
  EXPECT_EQ(normalized(kPrepend, " "), "\u2581 ");
}

TEST(Normalizer, ReplacesOccurrencesThatDoNotOverlap) {
  const json pairs = {{"type", "Replace"}, {"pattern", {{"String", "aa"}}}, {"content", "b"}};
  EXPECT_EQ(normalized(pairs, "aaaaa"), "bba");
}

TEST(Normalizer, NamesWhatItDoesNotSupport) {
  struct Case {
    json section;
    std::string named;
  };
  const std::vector<Case> cases{
      {{{"type", "Lowercase"}}, "`normalizer` is {\"type\":\"Lowercase\"}"},
      {{{"type", "Sequence"}}, "`normalizer` is"},
      {{{"type", "Sequence"}, {"normalizers", {kPrepend, "NFC"}}}, "`normalizer` is \"NFC\""},
      {{{"type", 3}}, "`normalizer` is"},
      {"NFC", "`normalizer` is \"NFC\""},
      {{{"type", "Prepend"}},
       "`normalizer.prepend`: expected a text that is not empty, found null"},
      {{{"type", "Prepend"}, {"prepend", ""}}, "`normalizer.prepend`"},
      {{{"type", "Prepend"}, {"prepend", 1}}, "`normalizer.prepend`"},
      {{{"type", "Replace"}, {"content", "x"}}, "`normalizer.pattern.String`"},
      {{{"type", "Replace"}, {"pattern", " "}, {"content", "x"}}, "`normalizer.pattern.String`"},
      {{{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "x"}},
       "`normalizer.pattern.String`"},
      {{{"type", "Replace"}, {"pattern", {{"Regex", " "}}}, {"content", "x"}},
       "`normalizer.pattern` is {\"Regex\":\" \"}"},
      {{{"type", "Replace"}, {"pattern", {{"String", " "}}}}, "`normalizer.content`"},
      {{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", 0}},
       "`normalizer.content`: expected a text, found 0"}};
  for (const Case& c : cases)
    EXPECT_TRUE(normalized(c.section, "a").starts_with(c.named)) << normalized(c.section, "a");
}

}  // namespace
}  // namespace temper::actors
