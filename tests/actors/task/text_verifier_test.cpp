#include "actors/task/internal/numbers.hpp"
#include "actors/task/internal/text_verifiers.hpp"
#include "core/clock.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::actors {
namespace {

Verdict judge_one(Verifier& verifier, std::string answer, std::string response) {
  const std::vector<JudgeRequest> one{{"p", std::move(answer), std::move(response)}};
  return verifier.judge(one).at(0);
}

double regex_reward(const std::string& pattern, std::string answer, std::string response) {
  auto verifier = make_regex_verifier(pattern);
  EXPECT_TRUE(verifier) << verifier.error().context;
  const Verdict verdict = judge_one(**verifier, std::move(answer), std::move(response));
  EXPECT_EQ(verdict.failure, "");
  return verdict.reward;
}

TEST(FinalNumber, ParsesCommonNumberFormats) {
  const auto is = [](std::string_view text, double value) {
    EXPECT_EQ(final_number(text), std::optional(value)) << text;
  };
  is("12", 12);
  is("It is 7, so 8.", 8);
  is("1,234", 1234);
  is("12,345,678.50", 12345678.5);
  is("1,2,3", 3);
  is("1,2345", 2345);
  is("1234,567", 567);
  is("-3.5", -3.5);
  is("10-3", 3);
  is("(1)-3", 3);
  is("x = -3", -3);
  is("$ -1,000", -1000);
  is(".5", 0.5);
  is("-.5", -0.5);
  is("1e3", 1000);
  is("1E-2 m", 0.01);
  is("2 eggs", 2);
  is("50%", 50);
  is("0018", 18);
  is("#### 12", 12);
  is("#### 12 of 30", 12);
  is("1 #### 2 #### -3,000\n", -3000);
  is(std::string(300, '0') + "7", 7);
}

TEST(FinalNumber, IsEmptyWithoutANumber) {
  for (const std::string_view text : {"", "none", "-", ".", "####", "1 ####", "e5e", "1e999"})
    EXPECT_EQ(final_number(text), text == "e5e" ? std::optional(5.0) : std::nullopt) << text;
}

TEST(FinalNumber, HandlesGarbageInLinearTime) {
  Random random(3, "numbers");
  const std::string alphabet = "0123456789,,,..--eE+# x";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(24); n > 0; --n)
      text += alphabet[random.below(alphabet.size())];
    const auto number = final_number(text);
    ASSERT_TRUE(!number || std::isfinite(*number)) << text;
  }
  const RealClock clock;
  for (const std::string_view piece :
       {"1", "-", ",", "1,", "1,111", "1.", ".1", "1e", "#", "1e+"}) {
    std::string text;
    while (text.size() < 200'000)
      text += piece;
    static_cast<void>(final_number(text));
  }
  EXPECT_LT(clock.now(), Time(std::chrono::seconds(10)));  // Not minutes.
}

TEST(Verifiers, ExactIgnoresSurroundingWhiteSpace) {
  const auto v = make_exact_verifier();
  EXPECT_EQ(judge_one(*v, "0918", " 0918\n").reward, 1);
  EXPECT_EQ(judge_one(*v, "0918", "918").reward, 0);
  EXPECT_EQ(judge_one(*v, "", "  ").reward, 1);
  EXPECT_TRUE(v->judge({}).empty());
}

TEST(Verifiers, NumericAppliesTheTolerance) {
  const auto v = make_numeric_verifier(0.5);
  EXPECT_EQ(judge_one(*v, "#### 1,234", "that makes 1234.5").reward, 1);
  EXPECT_EQ(judge_one(*v, "1234", "1234.75").reward, 0);
  EXPECT_EQ(judge_one(*v, "12", "no idea").reward, 0);
  EXPECT_EQ(judge_one(*v, "12", "no idea").failure, "");
  EXPECT_NE(judge_one(*v, "twelve", "12").failure, "");
  EXPECT_EQ(judge_one(*make_numeric_verifier(0), "0.1", ".10").reward, 1);
}

TEST(Verifiers, RegexEscapesTheAnswer) {
  EXPECT_EQ(regex_reward("^answer: {answer}$", "1+1", "answer: 1+1"), 1);
  EXPECT_EQ(regex_reward("^answer: {answer}$", "1+1", "answer: 11"), 0);
  EXPECT_EQ(regex_reward("{answer}", "a.c", "abc"), 0);
  const std::string special = "^$\\.*+?()[]{}|/-&\"'";
  EXPECT_EQ(regex_reward("<{answer}>", special, "x<" + special + ">"), 1);
  EXPECT_EQ(regex_reward("({answer}) or ({answer})", "1", "say 1 or 1"), 1);
  EXPECT_EQ(regex_reward("[0-9]+", "", "nine 9\nmore"), 1);
  EXPECT_EQ(regex_reward("{answer}", "{answer}", "x{answer}"), 1);
}

TEST(Verifiers, RegexRejectsUnsupportedPatterns) {
  for (const std::string pattern : {"", "(", "[", "a{2,1}", "(a)\\1", "*"}) {
    const auto made = make_regex_verifier(pattern);
    EXPECT_FALSE(made) << pattern;
  }
}

TEST(Verifiers, RegexBoundsTimeAndMemory) {
  const RealClock clock;
  auto v = *make_regex_verifier("^(a+)+{answer}$");
  EXPECT_EQ(judge_one(*v, "b", std::string(5000, 'a')).reward, 0);
  EXPECT_NE(judge_one(*v, "b", std::string(kLongestMatched + 1, 'a')).failure, "");
  EXPECT_NE(judge_one(*v, std::string(1 << 20, 'a'), "a").failure, "");
  EXPECT_FALSE(make_regex_verifier(std::string(1 << 20, '(')));
  EXPECT_LT(clock.now(), Time(std::chrono::seconds(10)));  // Not minutes.
}

TEST(Verifiers, RegexSurvivesGarbage) {
  Random random(5, "regex");
  const std::string alphabet = "ab01()[]{}*+?|^$\\.,-:=!dwsb\n";
  int compiled = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string pattern;
    for (std::uint64_t n = 1 + random.below(8); n > 0; --n)
      pattern +=
          random.chance(0.1) ? "{answer}" : std::string(1, alphabet[random.below(alphabet.size())]);
    auto v = make_regex_verifier(pattern);
    if (!v)
      continue;
    ++compiled;
    const Verdict verdict = judge_one(**v, "a1", "xx a1 (b)\n\xff");
    ASSERT_TRUE(verdict.reward == 0 || verdict.failure.empty()) << pattern;
  }
  EXPECT_GT(compiled, 100);
}

}  // namespace
}  // namespace temper::actors
