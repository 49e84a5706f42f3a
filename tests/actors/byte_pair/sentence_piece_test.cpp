// Whole tokenizers of the SentencePiece kind, with small hand-made vocabularies.
#include "actors/byte_pair/byte_pair_tokenizer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace temper::actors {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

json added(std::int32_t id, const char* text) {
  return {{"id", id}, {"content", text}, {"special", true}, {"normalized", false}};
}

/// <unk> (0), <s> (1), </s> (2), bytes (3 to 258), then space (259), "a" (260), "b" (261), " a"
/// (262), " ab" (263). Spaces are written as U+2581.
json llama2() {
  json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) {
    vocab[fmt::format("<0x{:02X}>", byte)] = 3 + byte;
  }
  for (const char* const text : {"\u2581", "a", "b", "\u2581a", "\u2581ab"})
    vocab[text] = vocab.size();
  return {
      {"added_tokens", {added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")}},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, replace(" ", "\u2581")}}}},
      {"pre_tokenizer", nullptr},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {replace("\u2581", " "),
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"vocab", vocab},
        {"merges", {"\u2581 a", "\u2581a b"}}}}};
}

json gemma() {
  json file = llama2();
  file["normalizer"] = replace(" ", "\u2581");
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"String", " "}}},
                           {"behavior", "MergedWithPrevious"},
                           {"invert", false}};
  file["decoder"]["decoders"].erase(3);
  return file;
}

json mistral() {
  json file = llama2();
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = {{"type", "Metaspace"},
                           {"replacement", "\u2581"},
                           {"prepend_scheme", "first"},
                           {"split", false}};
  return file;
}

BytePairTokenizer tokenizer_of(const json& file) {
  auto tokenizer = BytePairTokenizer::parse(file.dump());
  EXPECT_TRUE(tokenizer) << tokenizer.error().context;
  return *std::move(tokenizer);
}

std::string file_refusal(const json& file) {
  const auto tokenizer = BytePairTokenizer::parse(file.dump());
  return tokenizer ? "" : tokenizer.error().context;
}

TEST(SentencePiece, EncodesTheLayoutOfLlama2) {
  const BytePairTokenizer t = tokenizer_of(llama2());
  EXPECT_FALSE(t.byte_level());
  EXPECT_EQ(t.size(), 264);
  EXPECT_EQ(t.encode("ab a").value(), (Ids{263, 262}));
  EXPECT_EQ(t.encode("a<s>a").value(), (Ids{262, 1, 262})) << "each part gets a space";
  EXPECT_EQ(t.encode("\n").value(), (Ids{259, 3 + '\n'}));
  EXPECT_EQ(t.encode("").value(), Ids{});
}

TEST(SentencePiece, EncodesTheLayoutOfGemmaWithoutASpaceInFront) {
  const BytePairTokenizer t = tokenizer_of(gemma());
  EXPECT_EQ(t.encode("ab a").value(), (Ids{260, 261, 262}));
  EXPECT_EQ(t.encode(" a<s>a").value(), (Ids{262, 1, 260}));
}

TEST(SentencePiece, EncodesTheLayoutOfMistralWithASpaceAtTheStart) {
  const BytePairTokenizer t = tokenizer_of(mistral());
  EXPECT_EQ(t.encode("a<s>a").value(), (Ids{262, 1, 260}));
  EXPECT_EQ(t.encode("<s>a").value(), (Ids{1, 260}));
  EXPECT_EQ(t.encode(" a").value(), Ids{262});
}

TEST(SentencePiece, DecodesWhatItEncodes) {
  for (const json& file : {llama2(), gemma(), mistral()}) {
    const BytePairTokenizer t = tokenizer_of(file);
    for (const std::string text :
         {"", "a", "ab  a b", "\u6f22\u5b57 \U0001f600\n", "a\tb\r\n", "a ", "e\u0301"})
      EXPECT_EQ(t.decode(t.encode(text).value()), text);
  }
}

TEST(SentencePiece, KeepsSpacesAtTheStartUnlessMetaspaceHidesOne) {
  const std::string text = "  a ";
  const BytePairTokenizer kept = tokenizer_of(llama2());
  EXPECT_EQ(kept.decode(kept.encode(text).value()), text);
  // Metaspace adds no space here, so that the decoder strips one of the text.
  const BytePairTokenizer lost = tokenizer_of(mistral());
  EXPECT_EQ(lost.decode(lost.encode(text).value()), " a ");
}

TEST(SentencePiece, DecodesATruncatedCharacterToAReplacementPerByte) {
  const BytePairTokenizer t = tokenizer_of(gemma());
  const auto tokens = t.encode("a\u6f22").value();
  ASSERT_EQ(tokens.size(), 4U);
  EXPECT_EQ(t.decode(std::span(tokens).first(3)), "a\ufffd\ufffd");
  EXPECT_EQ(t.decode(Ids{260, 1, -1, 9999, 261}), "ab") << "special tokens and unknown ids";
}

TEST(SentencePiece, FindsNormalizedTokensInTheNormalizedText) {
  json file = llama2();
  json token = added(264, "<t>");
  token["normalized"] = true;
  file["added_tokens"].push_back(token);
  const BytePairTokenizer t = tokenizer_of(file);
  EXPECT_EQ(t.encode("<t>a").value(), (Ids{264, 260}));
  EXPECT_EQ(t.encode("a <t>").value(), (Ids{262, 264}));
  EXPECT_EQ(t.encode("a<t>").value().size(), 4U) << "the token begins with a space";
  EXPECT_EQ(t.decode(Ids{262, 264}), "a");
}

TEST(SentencePiece, StripsTheSpaceBesideAddedTokens) {
  json file = llama2();  // As Phi-3: <|end|> takes the line break after it.
  json token = added(264, "<|end|>");
  token["rstrip"] = true;
  file["added_tokens"].push_back(token);
  EXPECT_EQ(tokenizer_of(file).encode("a<|end|>\n b").value(), (Ids{262, 264, 259, 261}));
}

TEST(SentencePiece, NamesTheKeysOfMalformedFiles) {
  struct Case {
    const char* pointer;
    json value;
    std::string named;
  };
  const std::vector<Case> cases{
      {"/decoder", {{"type", "ByteLevel"}}, "`pre_tokenizer` and `decoder`: expected ByteLevel"},
      {"/pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}},
       "`pre_tokenizer` and `decoder`: expected ByteLevel"},
      {"/decoder", nullptr, "`decoder` is null"},
      {"/decoder/decoders/3/start", "1", "`decoder.start`"},
      {"/normalizer/normalizers/0/prepend", nullptr, "`normalizer.prepend`"},
      {"/normalizer/normalizers/1/content", nullptr, "`normalizer.content`"},
      {"/pre_tokenizer", {{"type", "Metaspace"}}, "`pre_tokenizer.replacement`"},
      {"/model/byte_fallback", 1, "`model.byte_fallback`"},
      {"/model/vocab/a", nullptr, "the id of \"a\""},
      {"/model/merges/1", "b", "merge 1"},
      {"/added_tokens/1/content", 5, "`added_tokens.content`"},
      {"/added_tokens/1/content", "", "`added_tokens.content`"},
      {"/added_tokens/1", "<s>", "`added_tokens.content`"},
      {"/added_tokens/1/id", nullptr, "the id of \"<s>\""},
      {"/added_tokens/1/rstrip", 1, "`added token \"<s>\".rstrip`: expected true or false"},
      {"/added_tokens/1/normalized", "no", "`added token \"<s>\".normalized`"},
      {"/added_tokens/1/single_word", true, "`added token \"<s>\".single_word` is true"}};
  for (const Case& c : cases) {
    json file = llama2();
    file[json::json_pointer(c.pointer)] = c.value;
    EXPECT_TRUE(file_refusal(file).starts_with(c.named)) << c.pointer << ": " << file_refusal(file);
  }
}

}  // namespace
}  // namespace temper::actors
