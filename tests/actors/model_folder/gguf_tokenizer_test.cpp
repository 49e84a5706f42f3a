#include "actors/model_folder/gguf_tokenizer.hpp"

#include "actors/byte_pair/byte_pair_tokenizer.hpp"
#include "core/json_document.hpp"
#include "tests/support/gguf_bytes.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::actors {
namespace {

using test::GgufBytes;
using Ids = std::vector<std::int32_t>;

Result<GgufTokenizer> read(const GgufBytes& file) {
  const std::string bytes = file.file();
  return read_gguf_tokenizer(
      GgufFile::parse(std::as_bytes(std::span(bytes)), bytes.size()).value());
}

std::string error_of(const GgufBytes& file) {
  const auto found = read(file);
  return found ? std::string() : found.error().context;
}

BytePairTokenizer tokenizer_of(const GgufBytes& file) {
  return BytePairTokenizer::parse(read(file).value().files.at("tokenizer.json")).value();
}

/// A vocabulary of bytes, two merges and two special tokens.
GgufBytes with_tokenizer(std::string_view pre) {
  GgufBytes file;
  file.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", pre)
      .texts("tokenizer.ggml.tokens",
             {"<|end|>", "a", "b", "1", "2", "Ġ", "ab", "Ġa", "12", "<|think|>", "[PAD]"})
      .integers("tokenizer.ggml.token_type", {3, 1, 1, 1, 1, 1, 1, 1, 1, 4, 5})
      .texts("tokenizer.ggml.merges", {"a b", "Ġ a", "1 2"})
      .uint32("tokenizer.ggml.eos_token_id", 0)
      .uint32("tokenizer.ggml.eot_token_id", 0)
      .text("tokenizer.chat_template", "{{ messages }}");
  return file;
}

TEST(GgufTokenizer, EncodesLikeTheFamily) {
  const auto encode = [](std::string_view pre, std::string_view text) {
    return tokenizer_of(with_tokenizer(pre)).encode(text).value();
  };
  EXPECT_EQ(encode("smollm", "ab 12<|end|>"), (Ids{6, 5, 3, 4, 0})) << "digits are single";
  EXPECT_EQ(encode("gpt-2", "ab a12"), (Ids{6, 7, 8}));
  EXPECT_EQ(encode("llama-bpe", "ab a12"), (Ids{6, 7, 8}));
  EXPECT_EQ(encode("qwen2", "a12<|think|>"), (Ids{1, 3, 4, 9})) << "digits are single";
}

TEST(GgufTokenizer, KeepsTheChatTemplateAndTheSpecialTokens) {
  const auto found = read(with_tokenizer("smollm")).value();
  EXPECT_EQ(found.end_tokens, Ids{0}) << "eos and eot are the same token";
  const nlohmann::json config = parse_json(found.files.at("tokenizer_config.json"));
  EXPECT_EQ(config["chat_template"], "{{ messages }}");
  EXPECT_EQ(config["eos_token"], "<|end|>");
  const nlohmann::json tokenizer = parse_json(found.files.at("tokenizer.json"));
  EXPECT_EQ(tokenizer["added_tokens"].size(), 2U);
  EXPECT_EQ(tokenizer["added_tokens"][0]["special"], true);
  EXPECT_EQ(tokenizer["added_tokens"][1]["special"], false);
  EXPECT_FALSE(tokenizer["model"]["vocab"].contains("[PAD]"));
}

/// The scores of "ba", "\u2581a" and "ab", which have the ids 9 to 11.
GgufBytes with_sentence_piece(float ba, float mark_a, float ab) {
  GgufBytes file;
  file.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens",
             {"<unk>",
              "<s>",
              "</s>",
              "<0x0A>",
              "<0xC3>",
              "<0xA9>",
              "\u2581",
              "a",
              "b",
              "ba",
              "\u2581a",
              "ab",
              "<think>",
              "[PAD]"})
      .integers("tokenizer.ggml.token_type", {2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 4, 5})
      .reals("tokenizer.ggml.scores", {0, 0, 0, 0, 0, 0, -9, -10, -11, ba, mark_a, ab, 0, 0})
      .uint32("tokenizer.ggml.eos_token_id", 2);
  return file;
}

TEST(GgufTokenizer, MergesSentencePiecesByScore) {
  const auto encode = [](float ba, float mark_a, float ab) {
    return tokenizer_of(with_sentence_piece(ba, mark_a, ab)).encode("abab").value();
  };
  // The text is "\u2581abab".
  EXPECT_EQ(encode(-1, -2, -3), (Ids{10, 9, 8}));
  EXPECT_EQ(encode(-2, -3, -1), (Ids{6, 11, 11}));
  EXPECT_EQ(encode(-3, -1, -2), (Ids{10, 8, 11}));
}

TEST(GgufTokenizer, PutsASpaceBeforeEachTextBetweenAddedTokens) {
  GgufBytes file = with_sentence_piece(-1, -2, -3);
  const BytePairTokenizer tokenizer = tokenizer_of(file);
  EXPECT_EQ(tokenizer.encode("a</s>a<think> a").value(), (Ids{10, 2, 10, 12, 6, 10}));
  EXPECT_EQ(tokenizer.encode("").value(), Ids{});
  EXPECT_EQ(tokenizer.decode(Ids{10, 2, 10, 12, 6, 10}), "a a<think>  a");
  file.flag("tokenizer.ggml.add_space_prefix", false);
  const BytePairTokenizer plain = tokenizer_of(file);
  EXPECT_EQ(plain.encode("a</s>a a").value(), (Ids{7, 2, 7, 10}));
  EXPECT_EQ(plain.decode(Ids{10, 7}), " aa");
}

TEST(GgufTokenizer, ReplacesUnknownCharactersWithTheirBytes) {
  const BytePairTokenizer tokenizer = tokenizer_of(with_sentence_piece(-1, -2, -3));
  EXPECT_EQ(tokenizer.encode("a\n\u00e9").value(), (Ids{10, 3, 4, 5}));
  EXPECT_EQ(tokenizer.decode(Ids{4, 5}), "\u00e9");
  EXPECT_EQ(tokenizer.encode("c").value(), (Ids{6, 0})) << "it has no byte token";
  EXPECT_EQ(tokenizer.encode("<unk>").value(), Ids{0}) << "as llama.cpp does";
}

TEST(GgufTokenizer, RejectsScoresThatAreNotThoseOfBpe) {
  EXPECT_EQ(error_of(with_sentence_piece(-1, -2.5F, -3)),
            "key 'tokenizer.ggml.scores': token 10: expected an integer as score, as BPE has them, "
            "found -2.5; Temper does not support Unigram");
  EXPECT_NE(error_of(with_sentence_piece(-1, -2, NAN)).find("token 11: expected an integer"),
            std::string::npos);
  EXPECT_EQ(error_of(with_sentence_piece(-1000, -2, -1000)),
            "key 'tokenizer.ggml.scores': tokens 9 and 11: both have the score -1000, so it is "
            "unknown which of them is merged first; use the model's Hugging Face folder");
  GgufBytes file;
  file.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", {"a", "b"});
  EXPECT_EQ(error_of(file),
            "key 'tokenizer.ggml.scores': expected 2 elements, one for each token, found 0");
  EXPECT_NE(error_of(file.reals("tokenizer.ggml.scores", {0})).find("found 1"), std::string::npos);
}

// As in Llama 2 and Mistral. The run has no token of 4 spaces, and 5 are 3 and 2.
TEST(GgufTokenizer, MergesRunsOfSpacesFromTheLeftIfTheirScoresAreEqual) {
  const auto encode = [](const std::vector<std::string>& runs, std::string_view text) {
    GgufBytes file;
    std::vector<std::string> tokens{"\u2581", "x"};
    std::vector<float> scores{-9, -8};
    tokens.insert(tokens.end(), runs.begin(), runs.end());
    scores.resize(tokens.size(), -1e9F);
    file.text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", tokens)
        .reals("tokenizer.ggml.scores", scores)
        .flag("tokenizer.ggml.add_space_prefix", false);
    return tokenizer_of(file).encode(text).value();
  };
  const std::string two = "\u2581\u2581", three = "\u2581\u2581\u2581", five = two + three;
  EXPECT_EQ(encode({two, three, five}, "    "), (Ids{3, 0}));
  EXPECT_EQ(encode({two, three, five}, "     x"), (Ids{4, 1}));
  EXPECT_EQ(encode({five, two, three}, "       "), (Ids{2, 3}));
  EXPECT_EQ(encode({two}, "x   x  "), (Ids{1, 2, 0, 1, 2}));
}

TEST(GgufTokenizer, RejectsTokensThatAreTooLongToMerge) {
  GgufBytes file;
  file.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", {"a", std::string(1025, 'a')})
      .reals("tokenizer.ggml.scores", {0, -1});
  EXPECT_EQ(error_of(file),
            "key 'tokenizer.ggml.tokens': token 1: expected at most 1024 bytes, found 1025");
}

TEST(GgufTokenizer, RejectsOtherModelsAndNormalizationsByName) {
  GgufBytes unigram;
  unigram.text("tokenizer.ggml.model", "t5");
  EXPECT_EQ(error_of(unigram),
            "key 'tokenizer.ggml.model': expected gpt2 (byte-level BPE) or llama (SentencePiece "
            "BPE), found t5; use the model's Hugging Face folder");
  GgufBytes spaces = with_sentence_piece(-1, -2, -3);
  EXPECT_NE(error_of(spaces.flag("tokenizer.ggml.remove_extra_whitespaces", true))
                .find("'tokenizer.ggml.remove_extra_whitespaces'"),
            std::string::npos);
  GgufBytes characters = with_sentence_piece(-1, -2, -3);
  EXPECT_NE(error_of(characters.integers("tokenizer.ggml.precompiled_charsmap", {1}))
                .find("'tokenizer.ggml.precompiled_charsmap'"),
            std::string::npos);
}

TEST(GgufTokenizer, RejectsInvalidTokens) {
  const auto base = [] {
    GgufBytes file;
    file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
    return file;
  };
  EXPECT_NE(error_of(base()).find("tokenizer.ggml.tokens"), std::string::npos);
  EXPECT_NE(error_of(base().texts("tokenizer.ggml.tokens", {"a", "\xff"})).find("not UTF-8"),
            std::string::npos);
  EXPECT_NE(
      error_of(base().texts("tokenizer.ggml.tokens", {"a", "a"}).texts("tokenizer.ggml.merges", {}))
          .find("tokens 0 and 1 have the same text"),
      std::string::npos);
  EXPECT_NE(
      error_of(
          base().texts("tokenizer.ggml.tokens", {"a"}).uint32("tokenizer.ggml.eos_token_id", 1))
          .find("expected one of the 1 tokens, found 1"),
      std::string::npos);
}

}  // namespace
}  // namespace temper::actors
