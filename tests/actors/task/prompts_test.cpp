#include "actors/task/prompts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace temper::actors {
namespace {

TaskConfig addition(std::int32_t digits, double held_out = 0.1) {
  TaskConfig task;
  task.digits = digits;
  task.held_out = held_out;
  return task;
}

std::unique_ptr<PromptSource> source_of(const TaskConfig& task, std::uint64_t seed = 1) {
  auto source = make_prompt_source(task, seed);
  EXPECT_TRUE(source);
  return *std::move(source);
}

/// Parses "12+34=" as {12, 34}.
std::pair<std::int64_t, std::int64_t> operands(const std::string& prompt) {
  const std::size_t plus = prompt.find('+');
  return {std::stoll(prompt.substr(0, plus)), std::stoll(prompt.substr(plus + 1))};
}

TEST(Addition, WritesOperandsAndSumWithFixedWidths) {
  TaskConfig task = addition(3);
  task.reverse_answer = false;
  const auto source = source_of(task);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Problem p = source->train(i);
    ASSERT_EQ(p.prompt.size(), 8U) << p.prompt;
    ASSERT_EQ(p.prompt[3], '+');
    ASSERT_EQ(p.prompt[7], '=');
    ASSERT_EQ(p.answer.size(), 4U);
    const auto [a, b] = operands(p.prompt);
    EXPECT_EQ(std::stoll(p.answer), a + b);
  }
  EXPECT_EQ(source->longest_prompt(Tokenizer::for_task({})).value(), Tokens(8));
}

TEST(Addition, WritesTheAnswerReversedIfConfigured) {
  TaskConfig straight = addition(3);
  straight.reverse_answer = false;
  const Problem forward = source_of(straight)->train(5);
  Problem backward = source_of(addition(3))->train(5);
  EXPECT_EQ(backward.prompt, forward.prompt);
  std::reverse(backward.answer.begin(), backward.answer.end());
  EXPECT_EQ(backward.answer, forward.answer);
}

TEST(Addition, DependsOnlyOnTaskSeedAndIndex) {
  const auto one = source_of(addition(3), 7);
  const auto two = source_of(addition(3), 7);
  const auto other = source_of(addition(3), 8);
  int same_as_other = 0;
  for (std::uint64_t i = 1000; i-- > 0;) {
    EXPECT_EQ(one->train(i), two->train(i));
    same_as_other += one->train(i) == other->train(i) ? 1 : 0;
  }
  EXPECT_LT(same_as_other, 10);
}

TEST(Addition, CoversAllOneDigitProblemsOncePerEpoch) {
  const auto source = source_of(addition(1));
  // 45 couples and 10 doubles; a tenth of each is held out: 5 couples (2 problems each) and 1
  // double.
  ASSERT_EQ(source->held_out_size(), 11U);
  std::set<std::string> held;
  for (std::uint64_t i = 0; i < 11; ++i)
    held.insert(source->held_out(i).prompt);
  EXPECT_EQ(held.size(), 11U);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::string> train;
    for (std::uint64_t i = 0; i < 89; ++i)
      train.insert(source->train(epoch * 89 + i).prompt);
    EXPECT_EQ(train.size(), 89U);
    for (const std::string& prompt : held)
      EXPECT_FALSE(train.contains(prompt)) << prompt;
  }
}

TEST(Addition, CoversAllTwoDigitProblemsOnce) {
  for (const double share : {0.0, 0.1, 0.9}) {
    const auto source = source_of(addition(2, share));
    std::set<std::string> all;
    const std::uint64_t held = source->held_out_size();
    EXPECT_NEAR(static_cast<double>(held), 10000 * share, 2);
    for (std::uint64_t i = 0; i < held; ++i)
      all.insert(source->held_out(i).prompt);
    for (std::uint64_t i = 0; i < 10000 - held; ++i)
      all.insert(source->train(i).prompt);
    EXPECT_EQ(all.size(), 10000U);
  }
}

TEST(Addition, HoldsOutTheSameProblemsAndMirrorImagesForEverySeed) {
  const auto one = source_of(addition(2), 1);
  const auto two = source_of(addition(2), 99);
  std::set<std::pair<std::int64_t, std::int64_t>> held;
  for (std::uint64_t i = 0; i < one->held_out_size(); ++i) {
    EXPECT_EQ(one->held_out(i), two->held_out(i));
    held.insert(operands(one->held_out(i).prompt));
  }
  for (const auto& [a, b] : held)
    EXPECT_TRUE(held.contains({b, a})) << a << "+" << b;
}

TEST(Addition, DrawsLeadingDigitsUniformly) {
  const auto source = source_of(addition(3));
  std::map<char, int> first;
  for (std::uint64_t i = 0; i < 10000; ++i)
    ++first[source->train(i).prompt[0]];
  ASSERT_EQ(first.size(), 10U);
  for (const auto& [digit, count] : first)
    EXPECT_NEAR(count, 1000, 150) << digit;  // 5 standard deviations of 30.
}

TEST(Addition, WorksAtNineDigitsAndFarIndices) {
  const auto source = source_of(addition(9));
  const Problem p = source->train(UINT64_MAX);
  EXPECT_EQ(p.prompt.size(), 20U);
  EXPECT_EQ(p.answer.size(), 10U);
  EXPECT_EQ(source->held_out(UINT64_MAX).prompt.size(), 20U);
}

TEST(Addition, RejectsInvalidDigits) {
  EXPECT_FALSE(make_prompt_source(addition(0), 1));
  EXPECT_FALSE(make_prompt_source(addition(10), 1));
}

}  // namespace
}  // namespace temper::actors
