#include "orchestrator/pipeline/message_sizes.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

constexpr Bytes::rep kGb = 1'000'000'000;

PipelineConfig long_answers() {
  PipelineConfig config;
  config.policy = actors::PolicyKind::Synthetic;
  config.synthetic.tokens = Tokens(65'536);
  config.algorithm.groups_per_update = 384;
  config.algorithm.responses_per_group = 8;
  config.staleness.bound = 1;
  return config;
}

TEST(MessageSizes, ABatchOf200MillionTokensIs2Point4Gigabytes) {
  const MessageSizes sizes = message_sizes(long_answers(), Tokens(8));
  EXPECT_EQ(sizes.update.count(), 3072LL * (12 * 65'536 + 4 * 8 + 64));
  EXPECT_EQ(sizes.payloads.count(), 2 * sizes.update.count());
  EXPECT_EQ(sizes.largest(), sizes.update);
  EXPECT_GT(sizes.head.count(), 4 * sizes.update.count());
}

TEST(MessageSizes, TopTokensAddAnIdAndALogprobEach) {
  PipelineConfig config = long_answers();
  const Bytes without = message_sizes(config, Tokens(8)).update;
  config.algorithm.distillation_top_k = 16;
  EXPECT_EQ((message_sizes(config, Tokens(8)).update - without).count(),
            3072LL * 65'536 * 16 * (4 + 4));
}

TEST(MessageSizes, AHeadThatDoesNotFitIsABrokenRuleThatSaysWhatToLower) {
  const MessageSizes sizes = message_sizes(long_answers(), Tokens(8));
  EXPECT_FALSE(check_head_memory(sizes, Bytes(11 * kGb)));
  EXPECT_FALSE(check_head_memory(sizes, std::nullopt)) << "the memory is unknown";
  const auto rule = check_head_memory(sizes, Bytes(4 * kGb));
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->keys.front(), "algorithm.groups_per_update");
  EXPECT_NE(rule->message.find("a batch takes 2.42 GB and up to 4.83 GB are outstanding"),
            std::string::npos)
      << rule->message;
  EXPECT_NE(rule->message.find("found 4.00 GB"), std::string::npos) << rule->message;
}

TEST(MessageSizes, OfTheLargestSettingsDoNotOverflow) {
  PipelineConfig config = long_answers();
  config.synthetic.tokens = Tokens(1 << 20);
  config.algorithm.groups_per_update = 1 << 30;
  config.algorithm.responses_per_group = 1 << 30;
  config.staleness.bound = 1024;
  EXPECT_GT(message_sizes(config, Tokens(1)).head.count(), 0);
  EXPECT_TRUE(check_head_memory(message_sizes(config, Tokens(1)), Bytes(1 << 30)));
}

TEST(MessageSizes, ThisMachineSaysWhatItHas) {
  ASSERT_TRUE(memory_here());
  EXPECT_GT(memory_here()->count(), 1 << 20);
}

}  // namespace
}  // namespace temper::orchestrator
