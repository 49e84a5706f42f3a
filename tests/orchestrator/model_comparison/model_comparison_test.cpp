// Differences, the tolerance, the verdict, and the inputs of a comparison.
#include "orchestrator/model_comparison/model_comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace temper::orchestrator {
namespace {

TEST(ComparisonSequences, AreInTheVocabularyAndTheContextAndAlwaysTheSame) {
  for (const auto& [vocabulary, context] :
       {std::pair{14, 32}, {49152, 8192}, {2, 1}, {1, 64}, {151936, 33}}) {
    const auto sequences = comparison_sequences(vocabulary, Tokens(context));
    EXPECT_EQ(sequences, comparison_sequences(vocabulary, Tokens(context)));
    std::set<std::size_t> lengths;
    for (const auto& sequence : sequences) {
      lengths.insert(sequence.size());
      for (const std::int32_t id : sequence) {
        EXPECT_GE(id, 0);
        EXPECT_LT(id, vocabulary);
      }
    }
    EXPECT_EQ(lengths.size(), sequences.size());
    EXPECT_EQ(*lengths.begin(), 1U);
    EXPECT_EQ(*lengths.rbegin(), static_cast<std::size_t>(std::min(64, context)));
  }
}

TEST(CompareLogits, ComparesLogProbabilitiesSoThatAConstantMakesNoDifference) {
  const std::vector<float> a{1, 2, 3, 4}, b{11, 12, 3, 4};
  const SequenceDifference d = compare_logits(a, b, 2);
  EXPECT_EQ(d.tokens, 2);
  EXPECT_EQ(d.same_best, 2);
  EXPECT_NEAR(d.largest, 0, 1e-12);
}

TEST(CompareLogits, FindsTheLargestAndTheMeanDifference) {
  // Row 1 is equal. Row 2: log-probabilities -log 2 and -log 2 against -log 4 and -log 4/3.
  const auto logit = static_cast<float>(std::log(3.0));
  const std::vector<float> a{5, 1, 0, 0}, b{5, 1, 0, logit};
  const SequenceDifference d = compare_logits(a, b, 2);
  EXPECT_NEAR(d.largest, std::log(2.0), 1e-6);
  EXPECT_NEAR(d.mean, (std::log(2.0) + std::log(1.5)) / 4, 1e-6);
  EXPECT_EQ(d.same_best, 1);
  EXPECT_GT(d.of_tolerance, 100);
}

TEST(CompareLogits, AllowsMoreForTokensThatAreNeverSampled) {
  // The second token has log-probability -40; 1e-3 + 40e-4 = 5e-3 is accepted there, 1e-3 at 0.
  const std::vector<float> b{40, 0};
  EXPECT_LT(compare_logits(std::vector<float>{40, 4e-3F}, b, 2).of_tolerance, 1);
  EXPECT_GT(compare_logits(std::vector<float>{40, 6e-3F}, b, 2).of_tolerance, 1);
  EXPECT_GT(compare_logits(std::vector<float>{4e-3F, 0}, std::vector<float>{0, 0}, 2).of_tolerance,
            1);
}

TransformersAnswer answer_of(std::vector<std::vector<std::int32_t>> tokens,
                             std::optional<std::vector<RenderedChat>> chats) {
  TransformersAnswer answer;
  answer.tokens = std::move(tokens);
  answer.chats = std::move(chats);
  return answer;
}

TEST(CompareTokens, CountsEqualTextsAndNamesTheFirstThatDiffers) {
  const std::vector<std::vector<std::int32_t>> ours{{1, 2}, {3}, {4}};
  const EqualTexts same = compare_tokens(ours, answer_of(ours, {}));
  EXPECT_EQ(same.equal, 3);
  EXPECT_EQ(same.compared, 3);
  EXPECT_EQ(same.note, "");
  const EqualTexts other = compare_tokens(ours, answer_of({{1, 2}, {3, 9}, {5}}, {}));
  EXPECT_EQ(other.equal, 1);
  EXPECT_EQ(other.note, "text 2: Temper [3], transformers [3, 9]");
  TransformersAnswer broken;
  broken.tokenizer_error = "no such class";
  EXPECT_EQ(compare_tokens(ours, broken).compared, 0);
  EXPECT_NE(compare_tokens(ours, broken).note.find("no such class"), std::string::npos);
}

TEST(CompareChats, ComparesThoseThatTemperRenders) {
  using Chats = std::vector<RenderedChat>;
  const Chats ours{{"<a>", ""}, {"", "no date"}, {"<c>\n", ""}};
  const EqualTexts same =
      compare_chats(ours, answer_of({}, Chats{{"<a>", ""}, {"x", ""}, ours[2]}));
  EXPECT_EQ(same.equal, 2);
  EXPECT_EQ(same.compared, 2);
  const EqualTexts other =
      compare_chats(ours, answer_of({}, Chats{{"<a>", ""}, {"x", ""}, {"<c>", ""}}));
  EXPECT_EQ(other.equal, 1);
  EXPECT_EQ(other.note, "chat 3: Temper \"<c>\\n\", transformers \"<c>\"");
  const EqualTexts rejected =
      compare_chats(ours, answer_of({}, Chats{{"", "not allowed"}, {"x", ""}, ours[2]}));
  EXPECT_EQ(rejected.equal, 1);
  EXPECT_NE(rejected.note.find("transformers the error: not allowed"), std::string::npos);
}

TEST(CompareChats, FindsNothingToCompareWithoutATemplate) {
  const std::vector<RenderedChat> none{{"", "no chat template"}};
  EXPECT_EQ(compare_chats(none, answer_of({}, {})).note, "none");
  EXPECT_EQ(compare_chats(none, answer_of({}, {})).compared, 0);
  // Only transformers sees a template: a run would reject the chats.
  const EqualTexts theirs =
      compare_chats(none, answer_of({}, std::vector<RenderedChat>{{"x", ""}}));
  EXPECT_EQ(theirs.compared, 0);
  EXPECT_NE(theirs.note.find("no chat template"), std::string::npos);
  // Only Temper sees one: its prompts would have another form.
  const EqualTexts ours = compare_chats(std::vector<RenderedChat>{{"x", ""}}, answer_of({}, {}));
  EXPECT_EQ(ours.compared, 1);
  EXPECT_EQ(ours.equal, 0);
}

ModelComparison comparison() {
  ModelComparison c;
  c.name = "tiny";
  c.sequences = {{"ids", 4, 2e-4, 1e-5, 4, 0.2}, {"text", 12, 1e-4, 1e-5, 12, 0.1}};
  c.tokenizer = {5, 5, ""};
  c.chat_template = {0, 0, "none"};
  c.agrees = agrees(c);
  return c;
}

TEST(Verdict, IsThatBothAgreeIfAllIsWithinTheToleranceAndEqual) {
  const ModelComparison c = comparison();
  EXPECT_TRUE(c.agrees);
  const std::string text = to_text(c);
  EXPECT_TRUE(text.ends_with("\nTemper and transformers agree\n")) << text;
  EXPECT_NE(text.find("16 of 16"), std::string::npos) << text;
  EXPECT_NE(text.find("chat template  none\n"), std::string::npos) << text;
}

TEST(Verdict, NamesWhatDiffers) {
  ModelComparison c = comparison();
  c.sequences[1].of_tolerance = 1.01;
  EXPECT_FALSE(agrees(c));
  EXPECT_NE(to_text(c).find("tolerance"), std::string::npos);
  c.agrees = false;
  EXPECT_NE(to_text(c).find("differ in log-probabilities: "), std::string::npos) << to_text(c);
  c.tokenizer.equal = 4;
  c.tokenizer.note = "text 2: ...";
  EXPECT_NE(to_text(c).find("differ in log-probabilities and token ids of texts: "),
            std::string::npos);
  EXPECT_NE(to_text(c).find("4 of 5 texts equal; the first that differs: text 2"),
            std::string::npos);

  ModelComparison tokens = comparison();
  tokens.tokenizer.equal = 0;
  EXPECT_FALSE(agrees(tokens));
  ModelComparison chats = comparison();
  chats.chat_template = {1, 2, "chat 2: ..."};
  EXPECT_FALSE(agrees(chats));
}

}  // namespace
}  // namespace temper::orchestrator
