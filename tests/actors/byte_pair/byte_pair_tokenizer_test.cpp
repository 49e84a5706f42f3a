// Tests with small hand-made vocabularies. tests/integration/ compares with the library
// `tokenizers`.
#include "actors/byte_pair/byte_pair_tokenizer.hpp"

#include "actors/byte_pair/byte_characters.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace temper::actors {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

/// Bytes from id 2 on, then "he" (258), "ll" (259), "hell" (260), " w" (261; a space is written Ġ).
json small() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes += static_cast<char>(byte);
  json file = json::parse(byte_level_tokenizer_json({"<pad>", "<end>"}, bytes));
  json& model = file["model"];
  for (const char* const joined : {"he", "ll", "hell", "\u0120w"})
    model["vocab"][joined] = model["vocab"].size();
  model["merges"] = {"h e", "l l", "he ll", json::array({"\u0120", "w"})};
  file["pre_tokenizer"]["use_regex"] = true;
  return file;
}

BytePairTokenizer made(const json& file) {
  auto tokenizer = BytePairTokenizer::parse(file.dump());
  EXPECT_TRUE(tokenizer) << tokenizer.error().context;
  return *std::move(tokenizer);
}
std::int32_t id(char c) {
  return 2 + static_cast<unsigned char>(c);
}

std::string refusal(const json& file) {
  const auto tokenizer = BytePairTokenizer::parse(file.dump());
  return tokenizer ? "" : tokenizer.error().context;
}

TEST(BytePairTokenizer, JoinsBytesByItsMerges) {
  const BytePairTokenizer t = made(small());
  EXPECT_EQ(t.size(), 262);
  EXPECT_EQ(t.encode("hello world").value(),
            (Ids{260, id('o'), 261, id('o'), id('r'), id('l'), id('d')}));
  EXPECT_EQ(t.decode(t.encode("hello world").value()), "hello world");
  EXPECT_EQ(t.encode("").value(), Ids{});
}

TEST(BytePairTokenizer, DoesNotJoinAcrossPieces) {
  json file = small();
  file["model"]["vocab"]["o\u0120"] = 262;
  file["model"]["merges"].push_back("o \u0120");
  EXPECT_EQ(made(file).encode("o w").value(), (Ids{id('o'), 261}));
}

TEST(BytePairTokenizer, MatchesTheLongestAddedToken) {
  json file = small();
  for (const auto& [text, number] :
       std::vector<std::pair<std::string, int>>{{"<a>", 262}, {"<a>b", 263}})
    file["added_tokens"].push_back({{"id", number}, {"content", text}, {"special", number == 262}});
  const BytePairTokenizer t = made(file);
  EXPECT_EQ(t.encode("h<a>h<a>bh<a").value(),
            (Ids{id('h'), 262, id('h'), 263, id('h'), id('<'), id('a')}));
  EXPECT_EQ(t.decode(Ids{id('h'), 262, 263, 1, id('h'), -4, 9999}), "h<a>bh")
      << "special tokens and unknown ids must be skipped";
}

TEST(BytePairTokenizer, HonorsIgnoreMerges) {
  json file = small();
  file["model"]["vocab"]["hello"] = 262;  // No merge produces it.
  EXPECT_EQ(made(file).encode("hello").value(), (Ids{260, id('o')}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(made(file).encode("hello").value(), Ids{262});
}

TEST(BytePairTokenizer, HonorsTheNormalizer) {
  json file = small();
  const std::string apart = "e\u0301";
  EXPECT_EQ(made(file).encode(apart).value().size(), 3U);
  file["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(made(file).decode(made(file).encode(apart).value()), "\u00e9");
}

TEST(BytePairTokenizer, SplitsByTheRegularExpression) {
  json file = small();
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"},
         {"pattern", {{"Regex", R"((?i:'s)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+)"}}},
         {"behavior", "Isolated"},
         {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  const auto pre_tokenizer = PreTokenizer::parse({file["pre_tokenizer"], "pre_tokenizer"});
  ASSERT_TRUE(pre_tokenizer) << pre_tokenizer.error().context;
  const auto pieces = pre_tokenizer->pieces("don'S 12345\v\u0085x!?", TextPlace::Start).value();
  EXPECT_EQ(pieces,
            (std::vector<std::string>{
                "don", "'S", "\u0120", "123", "45", "\u010b", "\u00c2\u0127x", "!?"}))
      << "text that the expression does not match is a separate piece";
}

TEST(BytePairTokenizer, HonorsIndividualDigits) {
  // Expected pieces from the library `tokenizers` 0.23.3 for the same pre_tokenizer.
  struct Case {
    json individual;
    std::string text;
    std::string pieces;  ///< Each ends with "|".
  };
  const std::vector<Case> cases{
      {true, "12+345", "1|2|+|3|4|5|"},
      {true, "is 12", "is| |1|2|"},
      {true, "v2.0-rc1", "v|2|.|0|-|rc|1|"},
      {true, "7", "7|"},
      {true, "", ""},
      {true, "none at all", "none| at| all|"},
      {true, "x\u00b2y", "x|\u00b2|y|"},         // superscripts are digits
      {true, "\u0663\u0664", "\u0663|\u0664|"},  // digits of other scripts too
      {true, "\u2163\u00bd", "\u2163|\u00bd|"},  // numerals and fractions too
      {false, "12+345", "12|+|345|"},
      {false, "is 12", "is| |12|"},
      {false, "a1b22c333", "a|1|b|22|c|333|"},
      {nullptr, "12+345", "12|+|345|"}};
  for (const Case& c : cases) {
    json digits = {{"type", "Digits"}};
    if (!c.individual.is_null())
      digits["individual_digits"] = c.individual;
    const json steps = {
        {"type", "Sequence"},
        {"pretokenizers",
         {digits, {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}}};
    const auto pre_tokenizer = PreTokenizer::parse({steps, "pre_tokenizer"});
    ASSERT_TRUE(pre_tokenizer) << pre_tokenizer.error().context;
    const auto list = pre_tokenizer->pieces(c.text, TextPlace::Start).value();
    std::string pieces;
    for (const std::string& piece : list)
      pieces += from_byte_characters(piece) + "|";
    EXPECT_EQ(pieces, c.pieces) << c.text << " " << c.individual;
  }
}

TEST(BytePairTokenizer, DecodesATruncatedCharacterToAReplacement) {
  const BytePairTokenizer t = made(small());
  const auto tokens = t.encode("\u00e9!").value();
  ASSERT_EQ(tokens.size(), 3U);
  EXPECT_EQ(t.decode(std::span(tokens).first(1)), "\ufffd");
  EXPECT_EQ(t.decode(tokens), "\u00e9!");
}

TEST(BytePairTokenizer, RejectsInvalidUtf8AndUnknownBytes) {
  EXPECT_NE(made(small()).encode("a\xff").error().context.find("not valid UTF-8"),
            std::string::npos);
  const auto digits = BytePairTokenizer::parse(byte_level_tokenizer_json({"<pad>"}, "0123456789"));
  ASSERT_TRUE(digits);
  EXPECT_EQ(digits->encode("907").value(), (Ids{10, 1, 8}));
  EXPECT_NE(digits->encode("9x").error().context.find("'x'"), std::string::npos);
}

TEST(BytePairTokenizer, NamesUnsupportedSettings) {
  const auto with = [](const char* pointer, const json& value) {
    json file = small();
    file[json::json_pointer(pointer)] = value;
    return refusal(file);
  };
  EXPECT_NE(with("/model/type", "Unigram").find("`model.type` is \"Unigram\""), std::string::npos);
  EXPECT_NE(with("/model/dropout", 0.1).find("`model.dropout`"), std::string::npos);
  EXPECT_NE(with("/model/continuing_subword_prefix", "##").find("continuing_subword_prefix"),
            std::string::npos);
  EXPECT_NE(with("/normalizer", {{"type", "Lowercase"}}).find("normalizer"), std::string::npos);
  EXPECT_NE(with("/pre_tokenizer/type", "Metaspace").find("pre_tokenizer"), std::string::npos);
  EXPECT_NE(with("/pre_tokenizer/add_prefix_space", true).find("add_prefix_space"),
            std::string::npos);
  EXPECT_NE(with("/pre_tokenizer", nullptr).find("ByteLevel"), std::string::npos);
  EXPECT_NE(with("/decoder", {{"type", "WordPiece"}}).find("decoder"), std::string::npos);
  EXPECT_NE(with("/added_tokens/0/single_word", true).find("single_word"), std::string::npos);
  EXPECT_NE(with("/model/merges", {"h nothere"}).find("merge 0"), std::string::npos);
  EXPECT_NE(with("/model/vocab/he", -1).find("\"he\""), std::string::npos);
  EXPECT_FALSE(BytePairTokenizer::parse("{"));
}

}  // namespace
}  // namespace temper::actors
