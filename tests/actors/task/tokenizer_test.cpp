#include "actors/task/tokenizer.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

Tokenizer tokenizer(TaskKind kind, TokenizerKind tokenizer = TokenizerKind::Auto) {
  TaskConfig task;
  task.kind = kind;
  task.tokenizer = tokenizer;
  return Tokenizer::for_task(task);
}

TEST(Tokenizer, UsesCharactersForAdditionAndBytesForJsonl) {
  EXPECT_EQ(tokenizer(TaskKind::Addition).vocabulary(), 14);
  EXPECT_EQ(tokenizer(TaskKind::Jsonl).vocabulary(), 258);
  EXPECT_EQ(tokenizer(TaskKind::Addition, TokenizerKind::Bytes).vocabulary(), 258);
  EXPECT_EQ(tokenizer(TaskKind::Jsonl, TokenizerKind::Characters).vocabulary(), 14);
}

TEST(Tokenizer, NumbersCharactersAfterPadAndEnd) {
  const Tokenizer t = tokenizer(TaskKind::Addition);
  const auto tokens = t.encode("09+=");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(*tokens, (std::vector<TokenId>{2, 11, 12, 13}));
  EXPECT_EQ(t.decode(*tokens), "09+=");
}

TEST(Tokenizer, RoundTripsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i)
    all += static_cast<char>(i);
  const Tokenizer t = tokenizer(TaskKind::Jsonl);
  const auto tokens = t.encode(all);
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->front(), 2);
  EXPECT_EQ(tokens->back(), 257);
  EXPECT_EQ(t.decode(*tokens), all);
}

TEST(Tokenizer, NamesACharacterOutsideTheAlphabet) {
  const Tokenizer t = tokenizer(TaskKind::Addition);
  const auto letter = t.encode("12x");
  ASSERT_FALSE(letter);
  EXPECT_EQ(letter.error().context, "'x' at position 2 is not in the alphabet \"0123456789+=\"");
  EXPECT_NE(t.encode("\xff").error().context.find("byte 0xff"), std::string::npos);
}

TEST(Tokenizer, DecodesUpToTheFirstEndAndSkipsUnknownIds) {
  const Tokenizer t = tokenizer(TaskKind::Addition);
  EXPECT_EQ(t.decode({3, 0, -7, 4, 1000, 14, t.end(), 5}), "12");
  EXPECT_EQ(t.decode({}), "");
}

// The tokenizer.json of a base model made for a task is equivalent to the built-in tokenizer.
TEST(Tokenizer, ReadsBackItsOwnTokenizerJson) {
  for (const TaskKind kind : {TaskKind::Addition, TaskKind::Jsonl}) {
    const Tokenizer built_in = tokenizer(kind);
    const test::TemporaryFolder folder;
    ASSERT_TRUE(write_file_atomically(folder / "tokenizer.json", tokenizer_json_of(built_in)));
    const auto read =
        Tokenizer::of_model({}, {folder.path(), built_in.vocabulary(), built_in.ends()});
    ASSERT_TRUE(read) << read.error().context;
    const std::string text = kind == TaskKind::Addition ? "12+3=15" : "a \t\u00e9\x7f\n";
    const auto tokens = built_in.encode(text).value();
    EXPECT_EQ(read->encode(text).value(), tokens);
    EXPECT_EQ(read->decode(tokens), text);
  }
}

TEST(Tokenizer, StopsAtAnyEndTokenOfTheModel) {
  const test::TemporaryFolder folder;
  const Tokenizer built_in = tokenizer(TaskKind::Jsonl);
  ASSERT_TRUE(write_file_atomically(folder / "tokenizer.json", tokenizer_json_of(built_in)));
  const auto read = Tokenizer::of_model({}, {folder.path(), 300, {298, 299}}).value();
  EXPECT_EQ(read.vocabulary(), 300);
  EXPECT_EQ(read.decode({2 + 'a', 299, 2 + 'b'}), "a");
  EXPECT_EQ(read.decode({2 + 'a', 298, 2 + 'b'}), "a");
  EXPECT_FALSE(Tokenizer::of_model({}, {folder.path(), 257, {1}})) << "the embedding is too small";
}

TEST(Tokenizer, SaysHowToTrainWithATokenizerThatTemperDoesNotRead) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(
      folder / "tokenizer.json",
      R"({"model": {"type": "Unigram", "vocab": {}, "merges": []}, "decoder": {"type": "Fuse"}})"));
  const auto read = Tokenizer::of_model({}, {folder.path(), 300, {1}});
  ASSERT_FALSE(read);
  const std::string& error = read.error().context;
  for (const char* const part : {"tokenizer.json", "Unigram", "prompt_token_ids", "completion_ids"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace temper::actors
