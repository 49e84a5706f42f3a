#include "rollout/gateway/episode_row.hpp"

#include <gtest/gtest.h>

namespace temper::test {
namespace {

using actors::FinishReason;
using actors::Segment;
using rollout::EpisodeRow;
using rollout::Generation;
using Ids = std::vector<std::int32_t>;

/// Tokens sampled with one version; the log-prob of each is minus its id.
Generation turn(const Ids& tokens, std::uint64_t version) {
  Generation g;
  g.tokens = tokens;
  for (const std::int32_t t : tokens)
    g.logprobs.push_back(-static_cast<float>(t));
  g.segments = {{PolicyVersion(version), Tokens(static_cast<std::int64_t>(tokens.size()))}};
  return g;
}

/// Prompt 1 2; sampled 3 4 with version 5; given 6; sampled 7 8 with version 6.
EpisodeRow two_turns() {
  EpisodeRow row({1, 2}, "ab");
  EXPECT_TRUE(row.move_to(Ids{1, 2}, PolicyVersion(5)));
  row.add(turn({3, 4}, 5));
  EXPECT_TRUE(row.move_to(Ids{1, 2, 3, 4, 6}, PolicyVersion(6)));
  row.add(turn({7, 8}, 6));
  return row;
}

TEST(EpisodeRow, HasWhatWasSampledAndWhatWasGivenApart) {
  const Generation g = two_turns().finish(ResponseId(9), FinishReason::End, 0.5);
  EXPECT_EQ(g.id, ResponseId(9));
  EXPECT_EQ(g.tokens, (Ids{3, 4, 6, 7, 8}));
  EXPECT_EQ(g.mask, (std::vector<std::uint8_t>{1, 1, 0, 1, 1}));
  EXPECT_EQ(g.logprobs, (std::vector<float>{-3, -4, 0, -7, -8}));
  EXPECT_EQ(g.rewards, (std::vector<float>{0, 0, 0, 0, 0.5}));
  EXPECT_EQ(g.segments,
            (std::vector<Segment>{{PolicyVersion(5), Tokens(2)}, {PolicyVersion(6), Tokens(3)}}));
}

TEST(EpisodeRow, CountsTurnsAndTokens) {
  const auto& counts = two_turns().counts();
  EXPECT_EQ(counts.turns, 2U);
  EXPECT_EQ(counts.sampled, 4U);
  EXPECT_EQ(counts.given, 1U);
  EXPECT_EQ(counts.forks, 0U);
}

TEST(EpisodeRow, ForksWhereTheContextLeavesWhatWasRecorded) {
  EpisodeRow row = two_turns();
  ASSERT_TRUE(row.move_to(Ids{1, 2, 3, 9, 9}, PolicyVersion(7)));  // 4 6 7 8 are dropped.
  row.add(turn({5}, 7));
  EXPECT_EQ(row.counts().forks, 1U);
  EXPECT_EQ(row.counts().dropped, 3U);
  EXPECT_EQ(row.counts().sampled, 2U);
  EXPECT_EQ(row.counts().given, 2U);
  const Generation g = std::move(row).finish(ResponseId(1), FinishReason::End, 0);
  EXPECT_EQ(g.tokens, (Ids{3, 9, 9, 5}));
  EXPECT_EQ(g.mask, (std::vector<std::uint8_t>{1, 0, 0, 1}));
  EXPECT_EQ(g.logprobs, (std::vector<float>{-3, 0, 0, -5}));
  EXPECT_EQ(g.segments,
            (std::vector<Segment>{{PolicyVersion(5), Tokens(1)}, {PolicyVersion(7), Tokens(3)}}));
  EXPECT_TRUE(g.rewards.empty());
}

TEST(EpisodeRow, ForksWhereATurnIsAskedForOnceMore) {
  EpisodeRow row = two_turns();
  ASSERT_TRUE(row.move_to(Ids{1, 2, 3, 4, 6}, PolicyVersion(6)));
  EXPECT_EQ(row.counts().forks, 1U);
  EXPECT_EQ(row.tokens(), (Ids{3, 4, 6}));
}

TEST(EpisodeRow, RefusesAContextThatDoesNotBeginWithThePrompt) {
  EpisodeRow row = two_turns();
  for (const Ids& context : {Ids{}, Ids{1}, Ids{2, 1, 3}}) {
    EXPECT_FALSE(row.move_to(context, PolicyVersion(6)));
    EXPECT_EQ(row.tokens().size(), 5U);
  }
}

}  // namespace
}  // namespace temper::test
