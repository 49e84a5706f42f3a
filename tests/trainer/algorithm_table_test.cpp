#include "trainer/algorithm_table.hpp"

#include "core/files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace temper::trainer {
namespace {

TEST(AlgorithmTable, HasEveryNameOnceWithItsSource) {
  EXPECT_EQ(algorithm_table().size(), EnumNames<AlgorithmName>::value.size());
  for (const auto& [name, text] : EnumNames<AlgorithmName>::value) {
    EXPECT_EQ(algorithm_row(name).name, name);
    EXPECT_FALSE(algorithm_row(name).source.empty()) << text;
    EXPECT_FALSE(algorithm_row(name).note.empty()) << text;
  }
}

TEST(AlgorithmTable, ARowFillsUnsetKeys) {
  AlgorithmConfig c;
  Algorithm a = resolve(c, Tokens(8));
  EXPECT_EQ(a.objective, Objective::Clip);
  EXPECT_EQ(a.clip_low, 0.2);
  EXPECT_EQ(a.clip_high, 0.28);
  EXPECT_FALSE(a.filter_equal_rewards);
  c.name = AlgorithmName::Gspo;
  a = resolve(c, Tokens(8));
  EXPECT_EQ(a.ratio, RatioLevel::Sequence);
  EXPECT_EQ(a.clip_low, 3e-4);
  EXPECT_EQ(a.average, Averaging::Sequence);
}

TEST(AlgorithmTable, AKeyOverridesItsColumn) {
  AlgorithmConfig c;
  c.name = AlgorithmName::Dapo;
  c.objective = Objective::Decoupled;
  c.advantage_mean = AdvantageMean::LeaveOneOut;
  c.advantage_std = AdvantageStd::Batch;
  c.ratio = RatioLevel::Sequence;
  c.average = Averaging::Constant;
  c.clip_low = 0.1;
  c.clip_high = 0.4;
  c.behaviour_weight_floor = 0.5;
  c.behaviour_weight_cap = 3;
  c.behaviour_weight_level = WeightLevel::Sequence;
  c.behaviour_weight_mode = WeightMode::Clamp;
  c.filter_equal_rewards = false;
  c.overlong_buffer = Tokens(3);
  c.overlong_penalty = 0.5;
  c.distillation = 2;
  c.reward_weight = 0.25;
  c.kl = 0.1;
  c.advantage_epsilon = 0.2;
  const Algorithm a = resolve(c, Tokens(50));
  EXPECT_EQ(a.objective, Objective::Decoupled);
  EXPECT_EQ(a.advantage_mean, AdvantageMean::LeaveOneOut);
  EXPECT_EQ(a.advantage_std, AdvantageStd::Batch);
  EXPECT_EQ(a.ratio, RatioLevel::Sequence);
  EXPECT_EQ(a.average, Averaging::Constant);
  EXPECT_EQ(a.clip_low, 0.1);
  EXPECT_EQ(a.clip_high, 0.4);
  EXPECT_EQ(a.behaviour_weight_floor, 0.5);
  EXPECT_EQ(a.behaviour_weight_cap, 3);
  EXPECT_EQ(a.behaviour_weight_level, WeightLevel::Sequence);
  EXPECT_EQ(a.behaviour_weight_mode, WeightMode::Clamp);
  EXPECT_FALSE(a.filter_equal_rewards);
  EXPECT_EQ(a.overlong_buffer, Tokens(3));
  EXPECT_EQ(a.overlong_penalty, 0.5);
  EXPECT_EQ(a.distillation, 2);
  EXPECT_EQ(a.reward_weight, 0.25);
  EXPECT_EQ(a.kl, 0.1);
  EXPECT_EQ(a.advantage_epsilon, 0.2);
  EXPECT_EQ(a.longest_response, Tokens(50));
}

TEST(AlgorithmTable, ASequenceRatioHasASequenceWeightUnlessTheRowOrAKeySaysOtherwise) {
  AlgorithmConfig c;
  EXPECT_EQ(resolve(c, Tokens(8)).behaviour_weight_level, WeightLevel::Token);
  c.ratio = RatioLevel::Sequence;
  EXPECT_EQ(resolve(c, Tokens(8)).behaviour_weight_level, WeightLevel::Geometric);
  c.name = AlgorithmName::SeqMis;
  EXPECT_EQ(resolve(c, Tokens(8)).behaviour_weight_level, WeightLevel::Sequence);
  c.behaviour_weight_level = WeightLevel::Token;
  EXPECT_EQ(resolve(c, Tokens(8)).behaviour_weight_level, WeightLevel::Token);
}

TEST(AlgorithmTable, AWrittenOutSectionDoesNotDependOnItsName) {
  for (const AlgorithmRow& row : algorithm_table()) {
    AlgorithmConfig c;
    c.name = row.name;
    c.kl = 0.2;
    const Algorithm expected = resolve(c, Tokens(20));
    for (const AlgorithmRow& other : algorithm_table()) {
      AlgorithmConfig whole = written_out(c, Tokens(20), 100);
      whole.name = other.name;
      EXPECT_EQ(resolve(whole, Tokens(20)), expected)
          << name_of(row.name) << " under " << name_of(other.name);
    }
  }
}

TEST(AlgorithmTable, AWrittenOutDecayEndsWithTheRunUnlessSaidOtherwise) {
  AlgorithmConfig c;
  EXPECT_EQ(written_out(c, Tokens(20), 100).learning_rate_schedule.decay_steps, std::nullopt);
  c.learning_rate_schedule.decay = Decay::Cosine;
  EXPECT_EQ(written_out(c, Tokens(20), 100).learning_rate_schedule.decay_steps, 100);
  c.learning_rate_schedule.decay_steps = 60;
  EXPECT_EQ(written_out(c, Tokens(20), 100).learning_rate_schedule.decay_steps, 60);
}

TEST(AlgorithmTable, DapoPenalizesTheLastFifthAndAtLeastOneToken) {
  AlgorithmConfig c;
  c.name = AlgorithmName::Dapo;
  EXPECT_EQ(resolve(c, Tokens(20480)).overlong_buffer, Tokens(4096));
  EXPECT_EQ(resolve(c, Tokens(4)).overlong_buffer, Tokens(1));
  EXPECT_TRUE(resolve(c, Tokens(4)).filter_equal_rewards);
}

// docs/reference/algorithms.md has the table between two marks; TEMPER_UPDATE_GOLDEN=1 rewrites it.
TEST(AlgorithmTable, DocumentationIsUpToDate) {
  const std::string path = std::string(TEMPER_SOURCE_DIR) + "/docs/reference/algorithms.md";
  const std::string text = read_file(path).value();
  const std::string begin = "<!-- table -->\n", end = "<!-- end of table -->";
  const auto from = text.find(begin) + begin.size(), to = text.find(end);
  ASSERT_LE(from, to);
  ASSERT_NE(to, std::string::npos);
  if (const char* update = std::getenv("TEMPER_UPDATE_GOLDEN"); update && *update == '1') {
    ASSERT_TRUE(write_file_atomically(
        path, text.substr(0, from) + write_algorithm_table() + text.substr(to)));
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), write_algorithm_table())
      << path << " is stale; TEMPER_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace
}  // namespace temper::trainer
