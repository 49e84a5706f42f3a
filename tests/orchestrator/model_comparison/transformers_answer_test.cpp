// Answers of the two processes of a comparison: a valid one, and its malformed neighbors.
#include "orchestrator/model_comparison/transformers_answer.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr std::int32_t kVocabulary = 4;

ComparisonRequest two_texts_and_a_chat() {
  return {{{0}, {1, 2}}, {"a", "b"}, {{{"user", "c"}}}};
}

constexpr std::string_view kValid =
    R"({"transformers": "5.0", "torch": "2.0", "architecture": "X", "vocabulary": 4,)"
    R"( "tokenizer_error": "", "tokens": [[1, 2], [0]], "chats": [{"text": "<c>"}]})";

Result<TransformersAnswer> parse(std::string_view text) {
  return parse_transformers_answer(text, two_texts_and_a_chat(), kVocabulary);
}

/// The valid answer with one part replaced.
std::string with(std::string_view part, std::string_view other) {
  std::string text(kValid);
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), other);
}

TEST(TransformersAnswer, IsReadIfItAnswersTheRequest) {
  const auto answer = parse(kValid);
  ASSERT_TRUE(answer) << answer.error().context;
  EXPECT_EQ(answer->transformers, "5.0");
  EXPECT_EQ(answer->torch, "2.0");
  EXPECT_EQ(answer->architecture, "X");
  EXPECT_EQ(answer->tokens, (std::vector<std::vector<std::int32_t>>{{1, 2}, {0}}));
  ASSERT_TRUE(answer->chats);
  EXPECT_EQ(answer->chats->at(0).text, "<c>");
}

TEST(TransformersAnswer, MayHaveNoTemplateARejectedChatOrNoTokenizer) {
  const auto none = parse(with(R"([{"text": "<c>"}])", "null"));
  ASSERT_TRUE(none) << none.error().context;
  EXPECT_FALSE(none->chats);
  const auto rejected = parse(with(R"({"text": "<c>"})", R"({"error": "no system"})"));
  ASSERT_TRUE(rejected) << rejected.error().context;
  EXPECT_EQ(rejected->chats->at(0).error, "no system");
  const auto tokenizer = parse(with(R"("tokenizer_error": "")", R"("tokenizer_error": "broken")"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().context;
  EXPECT_EQ(tokenizer->tokenizer_error, "broken");
}

TEST(TransformersAnswer, IsRejectedWithTheFieldThatIsInvalid) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "answer.json: expected a JSON object, found discarded"},
      {"[1]", "answer.json: expected a JSON object, found array"},
      {std::string(kValid).substr(0, 40), "answer.json: expected a JSON object, found discarded"},
      {with(R"("transformers": "5.0", )", ""), "transformers: expected a value, found none"},
      {with(R"("5.0")", "5"), "transformers: expected a text, found number"},
      {with(R"("2.0")", "null"), "torch: expected a text, found null"},
      {with(R"("X")", "[]"), "architecture: expected a text, found array"},
      {with(R"("vocabulary": 4)", R"("vocabulary": 5)"), "vocabulary: expected 4, found 5"},
      {with(R"("vocabulary": 4)", R"("vocabulary": "4")"), "vocabulary: expected 4, found \"4\""},
      {with(R"("vocabulary": 4,)", ""), "vocabulary: expected a value, found none"},
      {with(R"("tokenizer_error": "")", R"("tokenizer_error": 1)"),
       "tokenizer_error: expected a text, found number"},
      {with("[[1, 2], [0]]", "[[1, 2]]"), "tokens: expected a list of 2, found 1 elements"},
      {with("[[1, 2], [0]]", "[[1], [2], [0]]"), "tokens: expected a list of 2, found 3 elements"},
      {with("[[1, 2], [0]]", "null"), "tokens: expected a list of 2, found null"},
      {with("[0]", "0"), "tokens[1]: expected a list of token ids, found number"},
      {with("[0]", "[-1]"), "tokens[1]: expected token ids >= 0, found -1"},
      {with("[0]", "[0.5]"), "tokens[1]: expected token ids >= 0, found 0.5"},
      {with("[0]", "[2147483648]"), "tokens[1]: expected token ids >= 0, found 2147483648"},
      {with("[0]", R"(["0"])"), "tokens[1]: expected token ids >= 0, found string"},
      {with(R"([{"text": "<c>"}])", "[]"), "chats: expected a list of 1, found 0 elements"},
      {with(R"([{"text": "<c>"}])", "{}"), "chats: expected a list of 1, found object"},
      {with(R"({"text": "<c>"})", R"("<c>")"), "chats: expected objects, found string"},
      {with(R"("text")", R"("tekst")"), "text: expected a value, found none"},
      {with(R"({"text": "<c>"})", R"({"error": ""})"),
       "error: expected a reason, found an empty text"},
      {with(R"({"text": "<c>"})", R"({"error": null})"), "error: expected a text, found null"}};
  for (const auto& [text, message] : cases) {
    const auto answer = parse(text);
    ASSERT_FALSE(answer) << text;
    EXPECT_EQ(answer.error().context, message) << text;
    EXPECT_EQ(answer.error().code, ErrorCode::Internal);
  }
}

/// Logits of the request's three positions, with one value replaced.
class LogitsFile : public ::testing::Test {
 protected:
  Result<std::vector<float>> read(const std::string& bytes) {
    EXPECT_TRUE(write_file_atomically(folder_ / kLogitsFile, bytes));
    return read_logits(folder_ / kLogitsFile, two_texts_and_a_chat(), kVocabulary);
  }
  static std::string bytes_with(std::size_t at, float value) {
    std::array<float, 12> logits{};
    logits.at(at) = value;
    std::string bytes(sizeof(logits), '\0');
    std::memcpy(bytes.data(), logits.data(), bytes.size());
    return bytes;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(LogitsFile, IsReadInOrder) {
  const auto logits = read(bytes_with(7, -2.5F));
  ASSERT_TRUE(logits) << logits.error().context;
  ASSERT_EQ(logits->size(), 12U);
  EXPECT_EQ(logits->at(7), -2.5F);
}

TEST_F(LogitsFile, IsRejectedIfItIsMissingOrHasAnotherSize) {
  EXPECT_EQ(read_logits(folder_ / "none", two_texts_and_a_chat(), kVocabulary).error().code,
            ErrorCode::Io);
  const std::string valid = bytes_with(0, 0);
  for (const std::string& bytes :
       {std::string(), valid.substr(1), valid + '\0', valid + valid, valid.substr(0, 16)}) {
    const auto logits = read(bytes);
    ASSERT_FALSE(logits) << bytes.size();
    EXPECT_EQ(
        logits.error().context,
        "logits.f32: expected 48 bytes, 3 x 4 float32, found " + std::to_string(bytes.size()));
  }
}

TEST_F(LogitsFile, IsRejectedIfAValueIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    const auto logits = read(bytes_with(6, value));
    ASSERT_FALSE(logits) << value;
    EXPECT_NE(logits.error().context.find("after token 1 for id 2"), std::string::npos)
        << logits.error().context;
  }
}

}  // namespace
}  // namespace temper::orchestrator
