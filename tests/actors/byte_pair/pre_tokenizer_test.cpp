// Splitting of a text of the SentencePiece kind. byte_pair_tokenizer_test.cpp has the byte-level
// kind.
#include "actors/byte_pair/pre_tokenizer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace temper::actors {
namespace {

using nlohmann::json;

/// The pieces, each with "|" at its end, and "_" for U+2581. An error is its text.
std::string pieces(const json& section, std::string_view text, TextPlace place = TextPlace::Start) {
  const auto made = PreTokenizer::parse({section, "pre_tokenizer"});
  if (!made)
    return made.error().context;
  const auto pieces = made->pieces(text, place).value();
  std::string out;
  for (const std::string& piece : pieces)
    out += Replacement{"\u2581", "_"}.apply(piece) + "|";
  return out;
}

json metaspace(const json& settings) {
  json out = {{"type", "Metaspace"}, {"replacement", "\u2581"}};
  out.update(settings);
  return out;
}

TEST(PreTokenizer, ThatIsNullKeepsTheTextInOnePiece) {
  EXPECT_EQ(pieces(nullptr, " a\nb c"), " a\nb c|");
}

TEST(PreTokenizer, SplitsOrMarksSpacesByMetaspace) {
  struct Case {
    json settings;
    std::string text;
    std::string pieces;
  };
  // Expected pieces from the library `tokenizers` 0.23.3.
  const std::vector<Case> cases{
      {{{"prepend_scheme", "always"}}, "a  b ", "_a|_|_b|_|"},
      {{{"prepend_scheme", "always"}}, " a", "_a|"},
      {{{"prepend_scheme", "first"}}, "a b", "_a|_b|"},
      {{{"prepend_scheme", "never"}}, "a  b ", "a|_|_b|_|"},
      {{{"prepend_scheme", "always"}, {"split", false}}, "a  b", "_a__b|"},
      {{{"prepend_scheme", "never"}, {"split", false}}, "a b", "a_b|"},
      {json::object(), "a b", "_a|_b|"},
      {{{"add_prefix_space", true}, {"str_rep", "\u2581"}}, "a", "_a|"},
      {{{"add_prefix_space", false}}, "a", "a|"},
      {{{"replacement", "+"}}, "a b", "+a|+b|"}};
  for (const Case& c : cases)
    EXPECT_EQ(pieces(metaspace(c.settings), c.text), c.pieces) << c.settings;
}

TEST(PreTokenizer, PrependsFirstAtTheStartOnly) {
  const json first = metaspace({{"prepend_scheme", "first"}});
  EXPECT_EQ(pieces(first, "a", TextPlace::Start), "_a|");
  EXPECT_EQ(pieces(first, "a", TextPlace::Later), "a|");
  EXPECT_EQ(pieces(metaspace({{"prepend_scheme", "always"}}), "a", TextPlace::Later), "_a|");
}

TEST(PreTokenizer, MergesMatchesWithTheTextBefore) {
  json gemma = {{"type", "Split"},
                {"pattern", {{"String", " "}}},
                {"behavior", "MergedWithPrevious"},
                {"invert", false}};
  EXPECT_EQ(pieces(gemma, "  a  b c "), " | |a | |b |c |");
  gemma["pattern"]["String"] = "\\s.";
  EXPECT_EQ(pieces(gemma, "a\\s.b c"), "a\\s.|b c|") << "a text is not an expression";
}

TEST(PreTokenizer, NamesWhatItDoesNotSupport) {
  struct Case {
    json section;
    std::string named;
  };
  const auto split = [](const char* key, const json& value) {
    json out = {{"type", "Split"},
                {"pattern", {{"String", " "}}},
                {"behavior", "Isolated"},
                {"invert", false}};
    out[key] = value;
    return out;
  };
  const auto sequence = [](json steps) {
    return json{{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
  };
  const json digits = {{"type", "Digits"}};
  const std::vector<Case> cases{
      {{{"type", "Whitespace"}}, "`pre_tokenizer` is"},
      {{{"type", "Metaspace"}}, "`pre_tokenizer.replacement`: expected one character, found null"},
      {metaspace({{"replacement", ""}}), "`pre_tokenizer.replacement`"},
      {metaspace({{"replacement", "ab"}}), "`pre_tokenizer.replacement`"},
      {metaspace({{"replacement", 3}}), "`pre_tokenizer.replacement`"},
      {metaspace({{"prepend_scheme", "last"}}),
       "`pre_tokenizer.prepend_scheme`: expected always, first or never, found \"last\""},
      {metaspace({{"prepend_scheme", true}}), "`pre_tokenizer.prepend_scheme`"},
      {metaspace({{"prepend_scheme", "always"}, {"add_prefix_space", false}}),
       "`pre_tokenizer.prepend_scheme`: expected never"},
      {metaspace({{"add_prefix_space", "no"}}), "`pre_tokenizer.add_prefix_space`"},
      {metaspace({{"split", 1}}), "`pre_tokenizer.split`: expected true or false, found 1"},
      {sequence({digits, metaspace(json::object())}), "`pre_tokenizer` is"},
      {sequence({metaspace(json::object()), metaspace(json::object())}), "`pre_tokenizer` is"},
      {split("behavior", "Removed"), "`pre_tokenizer` is"},
      {split("behavior", nullptr), "`pre_tokenizer` is"},
      {split("invert", true), "`pre_tokenizer` is"},
      {split("invert", "no"), "`pre_tokenizer.invert`"},
      {split("pattern", nullptr), "`pre_tokenizer.pattern.String`"},
      {split("pattern", {{"String", ""}}), "`pre_tokenizer.pattern.String`"},
      {split("pattern", {{"Regex", 5}}), "`pre_tokenizer.pattern.Regex`"},
      {{{"type", "ByteLevel"}, {"add_prefix_space", true}}, "`pre_tokenizer.add_prefix_space`"},
      {{{"type", "Digits"}, {"individual_digits", 2}}, "`pre_tokenizer.individual_digits`"}};
  for (const Case& c : cases)
    EXPECT_TRUE(pieces(c.section, "a").starts_with(c.named)) << pieces(c.section, "a");
}

}  // namespace
}  // namespace temper::actors
