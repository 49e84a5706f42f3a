// PayloadStore: what a group's payload holds from its dispatch to its release.
#include "orchestrator/run/payload_store.hpp"

#include "core/msgpack.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::Problem;
using actors::TokenBlob;
using actors::Tokenizer;

constexpr std::int32_t kPerGroup = 4;

/// The alphabet of the addition task.
Tokenizer characters() {
  return Tokenizer::for_task({});
}

PayloadStore store_of(std::initializer_list<std::uint64_t> groups) {
  PayloadStore store(kPerGroup);
  for (const std::uint64_t g : groups)
    EXPECT_TRUE(
        store.add(GroupId(g), {std::to_string(g) + "+1=", std::to_string(g + 1)}, characters()));
  return store;
}

TEST(PayloadStore, AGroupHoldsItsPromptAndRoomForEveryResponse) {
  const PayloadStore store = store_of({7});
  const GroupPayload& group = store.group(GroupId(7));
  EXPECT_EQ(group.prompt, "7+1=");
  EXPECT_EQ(group.answer, "8");
  EXPECT_EQ(characters().decode(group.prompt_tokens), "7+1=");
  ASSERT_EQ(group.responses.size(), 4U);
  for (const ResponsePayload& r : group.responses)
    EXPECT_TRUE(r.tokens.empty() && r.logprobs.empty() && r.reference.empty());
}

TEST(PayloadStore, AResponseIsFoundThroughItsGroup) {
  PayloadStore store = store_of({0, 1});
  // Response 6 of groups of 4 is number 2 of group 1.
  EXPECT_EQ(store.group_id(ResponseId(6)), GroupId(1));
  EXPECT_EQ(store.group_of(ResponseId(6)).prompt, "1+1=");
  store.response(ResponseId(6)).tokens = {3, 4};
  EXPECT_EQ(store.group(GroupId(1)).responses[2].tokens, (TokenBlob{3, 4}));
  for (const std::uint64_t other : {0U, 3U, 4U, 5U, 7U})
    EXPECT_TRUE(store.response(ResponseId(other)).tokens.empty()) << other;
}

TEST(PayloadStore, WhatIsWrittenStaysUntilTheGroupIsReleased) {
  PayloadStore store = store_of({0, 1});
  store.response(ResponseId(5)).reward = 0.5;
  store.remove(GroupId(0));
  EXPECT_FALSE(store.has(GroupId(0)));
  EXPECT_TRUE(store.has(GroupId(1)));
  EXPECT_EQ(store.response(ResponseId(5)).reward, 0.5);
  store.remove(GroupId(0));  // A group that is not here may be released.
  EXPECT_EQ(store.all().size(), 1U);
}

TEST(PayloadStore, AGroupThatIsAddedAgainStartsAfresh) {
  PayloadStore store = store_of({2});
  store.response(ResponseId(8)).tokens = {5};
  ASSERT_TRUE(store.add(GroupId(2), {"9+9=", "81"}, characters()));
  EXPECT_EQ(store.group(GroupId(2)).answer, "81");
  EXPECT_TRUE(store.response(ResponseId(8)).tokens.empty());
  EXPECT_EQ(store.all().size(), 1U);
}

TEST(PayloadStore, APromptOutsideTheAlphabetIsRefusedByItsGroupAndLeavesNothing) {
  PayloadStore store(kPerGroup);
  const Status added = store.add(GroupId(12), {"1+\xc3\xa9=", "1"}, characters());
  ASSERT_FALSE(added);
  EXPECT_TRUE(added.error().context.starts_with("prompt of group 12: ")) << added.error().context;
  EXPECT_FALSE(store.has(GroupId(12)));
  EXPECT_TRUE(store.all().empty());
}

TEST(PayloadStore, AnEmptyPromptIsAPrompt) {
  PayloadStore store(kPerGroup);
  ASSERT_TRUE(store.add(GroupId(0), {"", "x"}, characters()));
  EXPECT_TRUE(store.group(GroupId(0)).prompt_tokens.empty());
}

TEST(PayloadStore, ComesBackFromACheckpointAsItWas) {
  PayloadStore store = store_of({3, 4});
  ResponsePayload& r = store.response(ResponseId(13));
  r.tokens = {2, 3, 1};
  r.logprobs = {-0.5F, -1.5F, -0.25F};
  r.reference = {-0.75F, -1.0F, -0.125F};
  r.reward = 1;
  r.first_version = PolicyVersion(6);
  r.top = {{4, 5, 6}, {-1, -2, -0.5F}};
  const std::string stored = encode(store.all());

  PayloadStore back = store_of({9});
  back.restore(decode<std::map<GroupId, GroupPayload>>(stored).value());
  EXPECT_FALSE(back.has(GroupId(9))) << "what was here before is void";
  EXPECT_EQ(encode(back.all()), stored);
  EXPECT_EQ(back.response(ResponseId(13)).logprobs, r.logprobs);
  EXPECT_EQ(back.response(ResponseId(13)).first_version, PolicyVersion(6));
  EXPECT_EQ(back.group_of(ResponseId(13)).answer, "4");
  const std::vector<ResponseId> trained{ResponseId(13), ResponseId(14)};
  const auto samples = back.samples(trained);
  EXPECT_EQ(samples.at(0).top, r.top);
  EXPECT_FALSE(samples.at(1).top) << "not asked for";
}

}  // namespace
}  // namespace temper::orchestrator
