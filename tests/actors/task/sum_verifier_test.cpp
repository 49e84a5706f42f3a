#include "actors/task/prompts.hpp"
#include "actors/task/verifier.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

VerifierTerm term(VerifierKind kind, double weight, std::string pattern = "") {
  VerifierTerm out;
  out.kind = kind;
  out.weight = weight;
  out.pattern = std::move(pattern);
  return out;
}

VerifierConfig sum(std::map<std::string, VerifierTerm> terms) {
  VerifierConfig config;
  config.kind = VerifierKind::Sum;
  config.terms = std::move(terms);
  return config;
}

TEST(SumVerifier, AddsTheRewardsOfItsTermsByTheirWeights) {
  const auto verifier = make_verifier(sum({{"right", term(VerifierKind::Numeric, 2)},
                                           {"digits", term(VerifierKind::Regex, 0.5, "^\\d+$")}}));
  ASSERT_TRUE(verifier) << verifier.error().context;
  EXPECT_EQ((*verifier)->terms(), (std::vector<std::string>{"digits", "right"}));
  const std::vector<JudgeRequest> batch{{"p", "7", "7"}, {"p", "7", "8"}, {"p", "7", "it is 7"}};
  const auto verdicts = (*verifier)->judge(batch);
  EXPECT_EQ(verdicts[0].reward, 2.5);  // 2 * 1 + 0.5 * 1
  EXPECT_EQ(verdicts[1].reward, 0.5);
  EXPECT_EQ(verdicts[2].reward, 2.0);
  EXPECT_EQ(verdicts[2].terms, (std::vector<double>{0, 1}));
  EXPECT_FALSE((*verifier)->gave_up());
}

TEST(SumVerifier, FailsAResponseThatATermCannotJudgeAndNamesTheTerm) {
  const auto verifier = make_verifier(
      sum({{"right", term(VerifierKind::Numeric, 1)}, {"same", term(VerifierKind::Exact, 1)}}));
  ASSERT_TRUE(verifier);
  const std::vector<JudgeRequest> batch{{"p", "seven", "seven"}};
  EXPECT_EQ((*verifier)->judge(batch)[0].failure, "right: the answer \"seven\" has no number");
}

TEST(SumVerifier, NamesTheTermThatCannotBeMade) {
  const auto broken = make_verifier(sum({{"shape", term(VerifierKind::Regex, 1, "(")}}));
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().context.starts_with("verifier.terms.shape: verifier.pattern `(`"))
      << broken.error().context;
  EXPECT_FALSE(make_verifier(sum({{"a", term(VerifierKind::Judge, 1)}})));
  EXPECT_FALSE(make_verifier(sum({{"a", term(VerifierKind::Sum, 1)}})));
}

TEST(Terms, OfFunctionsHaveTheirShortNamesUnlessTwoAreEqual) {
  VerifierConfig config;
  config.kind = VerifierKind::Python;
  config.pool = 7;
  config.functions = {{"a.b:right", 2}, {"a:brief", 0.5}, {"c:brief", 1}};
  config.function = "d:kind";
  const auto terms = terms_of(config);
  ASSERT_EQ(terms.size(), 4U);
  EXPECT_EQ(terms.at("right").function, "a.b:right");
  EXPECT_EQ(terms.at("right").weight, 2);
  EXPECT_EQ(terms.at("right").pool, 7);
  EXPECT_EQ(terms.at("kind").weight, 1);
  EXPECT_TRUE(terms.contains("a:brief") && terms.contains("c:brief"));
}

TEST(Terms, OfAnotherVerifierAreItself) {
  VerifierConfig config;
  config.kind = VerifierKind::Numeric;
  config.tolerance = 3;
  const auto terms = terms_of(config);
  ASSERT_EQ(terms.size(), 1U);
  EXPECT_EQ(terms.at("numeric").tolerance, 3);
  EXPECT_FALSE(needs_python(config));
  config.kind = VerifierKind::Model;
  EXPECT_TRUE(needs_python(config));
  EXPECT_TRUE(needs_python(
      sum({{"a", term(VerifierKind::Exact, 1)}, {"b", term(VerifierKind::Judge, 1)}})));
}

TEST(AnswerRule, OfASumIsThatOfItsStrictestTerm) {
  EXPECT_EQ(answers_for(sum({{"a", term(VerifierKind::Judge, 1)}})), AnswerRule::Any);
  EXPECT_EQ(answers_for(sum({{"a", term(VerifierKind::Exact, 1)},
                             {"b", term(VerifierKind::Numeric, 1)},
                             {"c", term(VerifierKind::Model, 1)}})),
            AnswerRule::Number);
}

}  // namespace
}  // namespace temper::actors
