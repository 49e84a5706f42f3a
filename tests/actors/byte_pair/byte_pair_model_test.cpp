#include "actors/byte_pair/byte_pair_model.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace temper::actors {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

/// <unk> (0), bytes of U+00E9 (1, 2), "a" (3), "b" (4), "ab" (5).
json small_model() {
  return {{"type", "BPE"},
          {"unk_token", "<unk>"},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"vocab", {{"<unk>", 0}, {"<0xC3>", 1}, {"<0xA9>", 2}, {"a", 3}, {"b", 4}, {"ab", 5}}},
          {"merges", {"a b"}}};
}

json changed(const char* key, const json& value) {
  json model = small_model();
  model[key] = value;
  return model;
}

Ids ids(const json& model, const std::string& text) {
  const json parsed = json::parse(model.dump());  // Numbers of a file are unsigned.
  const auto made = BytePairModel::parse({parsed, "model"});
  EXPECT_TRUE(made) << made.error().context;
  Ids out;
  EXPECT_TRUE(made->encode(text, out));
  return out;
}

std::string model_refusal(const json& model) {
  const json parsed = json::parse(model.dump());
  const auto made = BytePairModel::parse({parsed, "model"});
  return made ? "" : made.error().context;
}

TEST(BytePairModel, ReplacesUnknownCharactersByTheirBytes) {
  EXPECT_EQ(ids(small_model(), "ab\u00e9a"), (Ids{5, 1, 2, 3}));
  EXPECT_EQ(ids(small_model(), "\u6f22"), Ids{0}) << "not all bytes have a token";
  EXPECT_EQ(ids(changed("byte_fallback", false), "\u00e9"), Ids{0});
}

TEST(BytePairModel, FusesUnknownCharacters) {
  // Expected ids from the library `tokenizers` 0.23.3, which moves an unknown character behind the
  // bytes that follow it.
  EXPECT_EQ(ids(small_model(), "xya"), (Ids{0, 3}));
  EXPECT_EQ(ids(changed("fuse_unk", false), "xya"), (Ids{0, 0, 3}));
  EXPECT_EQ(ids(small_model(), "x\u00e9ya"), (Ids{1, 2, 0, 3}));
  EXPECT_EQ(ids(changed("fuse_unk", false), "x\u00e9ya"), (Ids{1, 2, 0, 0, 3}));
}

TEST(BytePairModel, ReadsMergesAsTextsAndAsPairs) {
  EXPECT_EQ(ids(changed("merges", json::array({json::array({"a", "b"})})), "ab"), Ids{5});
  EXPECT_EQ(ids(changed("merges", json::array()), "ab"), (Ids{3, 4}));
}

TEST(BytePairModel, NeedsNoTokenForUnknownCharactersUntilOneComes) {
  for (const json& unknown : {json(nullptr), json("<nothing>")}) {
    const json parsed = json::parse(changed("unk_token", unknown).dump());
    const auto made = BytePairModel::parse({parsed, "model"});
    ASSERT_TRUE(made) << made.error().context;
    Ids out;
    EXPECT_TRUE(made->encode("ab", out));
    EXPECT_TRUE(
        made->encode("x", out).error().context.starts_with("'x' is not in the tokenizer's"));
  }
}

TEST(BytePairModel, EncodesALongPieceInReasonableTime) {
  // Quadratic time would be 2^40 steps.
  std::string text;
  for (int i = 0; i < 1 << 19; ++i)
    text += "ab";
  EXPECT_EQ(ids(small_model(), text), Ids(1 << 19, 5));
}

TEST(BytePairModel, NamesWhatItDoesNotSupport) {
  struct Case {
    json model;
    std::string named;
  };
  const std::vector<Case> cases{
      {nullptr, "`model` has no vocab and merges"},
      {changed("vocab", json::array()), "`model` has no vocab and merges"},
      {changed("merges", nullptr), "`model` has no vocab and merges"},
      {changed("type", "Unigram"), "`model.type` is \"Unigram\""},
      {changed("dropout", 0.1), "`model.dropout` is 0.1"},
      {changed("continuing_subword_prefix", "##"), "`model.continuing_subword_prefix`"},
      {changed("byte_fallback", "yes"), "`model.byte_fallback`: expected true or false"},
      {changed("fuse_unk", 1), "`model.fuse_unk`: expected true or false, found 1"},
      {changed("ignore_merges", "no"), "`model.ignore_merges`"},
      {changed("unk_token", 0), "`model.unk_token`"},
      {changed("vocab", {{"a", -1}}), "the id of \"a\""},
      {changed("vocab", {{"a", "0"}}), "the id of \"a\""},
      {changed("vocab", {{"a", 1 << 24}}), "the id of \"a\""},
      {changed("merges", {"ab"}), "merge 0: expected a pair of tokens"},
      {changed("merges", json::array({json::array({"a"})})), "merge 0: expected a pair of tokens"},
      {changed("merges", {"a b", "b a"}),
       "merge 1: the tokens of \"b a\" are not in the vocabulary"}};
  for (const Case& c : cases)
    EXPECT_TRUE(model_refusal(c.model).starts_with(c.named)) << model_refusal(c.model);
}

}  // namespace
}  // namespace temper::actors
