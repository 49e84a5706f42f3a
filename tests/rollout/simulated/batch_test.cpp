#include "rollout/simulated/batch.hpp"

#include <gtest/gtest.h>

namespace temper::rollout {
namespace {

using FinishedResponses = std::vector<Batch::FinishedResponse>;

/// Blocks of one token, so that a block is a token.
BatchLimits limits(std::int64_t blocks, std::int64_t concurrency) {
  BatchLimits out;
  out.blocks = out.replica_blocks = blocks;
  out.block = 1;
  out.concurrency = concurrency;
  return out;
}

BatchRequest request(std::uint64_t response, std::int64_t length, std::int64_t prefix = 0) {
  BatchRequest out;
  out.lease = LeaseId(1);
  out.response = ResponseId(response);
  out.group = GroupId(response);
  out.prefix = prefix;
  out.length = length;
  return out;
}

class BatchOf : public ::testing::Test {
 protected:
  void begin(const BatchLimits& limits) { batch.emplace(limits, PolicyVersion(0)); }
  void add(const BatchRequest& r) { batch->add(r, ended); }
  void admit() {
    batch->admit([](const PrefillPiece&) { return false; });
  }
  void decode(std::int64_t steps) {
    admit();
    batch->prefill().clear();  // Takes no step here.
    batch->decode(steps, ended);
  }
  FinishedResponses interrupt(bool host_has_room) {
    FinishedResponses out;
    batch->interrupt(out, [&](const PrefillPiece&) { return host_has_room; });
    return out;
  }

  std::optional<Batch> batch;
  FinishedResponses ended;
};

TEST_F(BatchOf, AnInterruptLeavesNoPrefillToNobody) {
  BatchLimits chunked = limits(1000, 8);
  chunked.chunked_prefill = true;
  begin(chunked);
  add(request(1, 50, 5));
  decode(10);
  add(request(2, 50, 5));
  admit();
  batch->invalidate_cache();
  EXPECT_FALSE(batch->prefill().empty());
  interrupt(true);
  EXPECT_EQ(batch->load(), 0);
  EXPECT_TRUE(batch->prefill().empty());
}

TEST_F(BatchOf, ACallerKeepsItsCacheWhereItWouldNotBeEnoughForTheNext) {
  actors::ToolConfig config;
  config.turn.kind = actors::LengthKind::Constant;
  config.turn.mean = 100;
  const actors::ToolCalls tools(config, 1);
  BatchLimits calling = limits(1000, 8);
  calling.tools = &tools;
  begin(calling);
  add(request(1, 900));
  decode(100);
  ASSERT_EQ(batch->calling(), 1);
  const std::int64_t held = batch->kv().used();
  EXPECT_GE(held, 100);
  add(request(2, 950, 600));
  add(request(3, 950, 800));
  admit();
  EXPECT_EQ(batch->waiting(), 1) << "the third does not fit beside the second";
  EXPECT_EQ(batch->kv().used(), held + 601);
}

TEST_F(BatchOf, AnInterruptedPrefixComesBackFromTheHost) {
  begin(limits(1000, 8));
  add(request(1, 50));
  decode(10);
  const FinishedResponses parts = interrupt(true);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_TRUE(parts[0].cached);
  EXPECT_EQ(batch->parked_tokens(), 10);

  BatchRequest again = request(1, 50, 10);
  again.kept = true;
  add(again);
  admit();
  ASSERT_EQ(batch->prefill().size(), 1U);
  EXPECT_EQ(batch->prefill()[0].tokens, 10);
  EXPECT_TRUE(batch->prefill()[0].parked);
  EXPECT_EQ(batch->parked_tokens(), 0);
}

TEST_F(BatchOf, WithoutRoomOnTheHostThePrefixIsComputedAgain) {
  begin(limits(1000, 8));
  add(request(1, 50));
  decode(10);
  EXPECT_FALSE(interrupt(false)[0].cached);
  BatchRequest again = request(1, 50, 10);
  again.kept = true;
  add(again);
  admit();
  ASSERT_EQ(batch->prefill().size(), 1U);
  EXPECT_FALSE(batch->prefill()[0].parked);
  EXPECT_TRUE(batch->prefill()[0].repeated);
}

TEST_F(BatchOf, WhatWasKeptIsForgottenAtTheNextInterruption) {
  begin(limits(1000, 8));
  add(request(1, 50));
  decode(10);
  interrupt(true);
  interrupt(true);  // It never returned.
  EXPECT_EQ(batch->parked_tokens(), 0);
}

TEST_F(BatchOf, APrefixThatGrewElsewhereIsNotTheOneKept) {
  begin(limits(1000, 8));
  add(request(1, 50));
  decode(10);
  interrupt(true);
  BatchRequest later = request(1, 50, 20);
  later.kept = true;
  add(later);
  EXPECT_EQ(batch->parked_tokens(), 0);
  admit();
  EXPECT_FALSE(batch->prefill()[0].parked);
}

TEST_F(BatchOf, AMovedPrefixIsCopiedOnce) {
  begin(limits(1000, 8));
  BatchRequest moved = request(1, 50, 20);
  moved.moved = true;
  add(moved);
  admit();
  ASSERT_EQ(batch->prefill().size(), 1U);
  EXPECT_TRUE(batch->prefill()[0].moved);
  EXPECT_EQ(batch->prefill()[0].tokens, 20);
}

TEST_F(BatchOf, WithdrawnResponsesAreCachedUnlessTheirCacheIsNotComputedYet) {
  begin(limits(1000, 8));
  add(request(1, 50));
  add(request(2, 50));
  decode(10);
  FinishedResponses out;
  batch->withdraw({ResponseId(1)}, out);
  EXPECT_TRUE(out[0].cached);
  add(request(3, 50, 30));
  admit();  // Its prefix must be computed.
  batch->withdraw({ResponseId(2)}, out);
  EXPECT_FALSE(out[1].cached);
}

TEST_F(BatchOf, OldestFirstTheOlderGroupEntersBeforeTheYoungerThatWaitsLonger) {
  for (const bool deadline_first : {false, true}) {
    BatchLimits l = limits(1000, 1);
    l.deadline_first = deadline_first;
    begin(l);
    ended.clear();
    add(request(5, 3));
    admit();
    add(request(9, 4));  // Waits first.
    add(request(2, 4));  // Is older.
    decode(3);
    decode(4);
    ASSERT_EQ(ended.size(), 2U);
    EXPECT_EQ(ended[0].response, ResponseId(5));
    EXPECT_EQ(ended[1].response, ResponseId(deadline_first ? 2 : 9));
  }
}

TEST_F(BatchOf, OldestFirstTheYoungestGroupLeavesWhereverItCameFrom) {
  for (const bool deadline_first : {false, true}) {
    BatchLimits l = limits(20, 8);
    l.deadline_first = deadline_first;
    begin(l);
    add(request(9, 15));
    add(request(2, 15));  // Entered last, but is older.
    decode(9);            // 2 x 10 blocks for the next step: full.
    decode(1);
    batch->preempt([](const PrefillPiece&) { return false; });
    EXPECT_EQ(batch->running(), 1);
    FinishedResponses out;
    batch->withdraw({ResponseId(deadline_first ? 9 : 2)}, out);
    EXPECT_EQ(batch->running(), 1);  // It was waiting.
    EXPECT_EQ(batch->waiting(), 0);
  }
}

/// A prefill instance whose steps have `tokens`, and whose cache has `cache`.
BatchLimits disaggregated(std::int64_t tokens, std::int64_t cache) {
  BatchLimits out = limits(1000, 8);
  out.disaggregated = true;
  out.prefill_tokens = tokens;
  out.prefill_cache = cache;
  return out;
}

BatchRequest prompted(std::uint64_t response, std::int64_t prompt) {
  BatchRequest out = request(response, 50);
  out.prompt = prompt;
  return out;
}

TEST_F(BatchOf, ResponsesPrefillTogetherUpToAStepOfThePrefillInstance) {
  begin(disaggregated(100, 1000));
  for (std::uint64_t r = 1; r <= 4; ++r)
    add(prompted(r, 40));
  admit();
  EXPECT_EQ(batch->prefill().size(), 2U);
  EXPECT_EQ(batch->running(), 0);
  batch->finish_prefill();
  EXPECT_EQ(batch->running(), 2);
  admit();
  batch->decode(1, ended);
  EXPECT_EQ(batch->running(), 2) << "the others prefill meanwhile";
  batch->finish_prefill();
  EXPECT_EQ(batch->running(), 4);
}

TEST_F(BatchOf, APromptLongerThanAStepPrefillsAlone) {
  begin(disaggregated(100, 1000));
  add(prompted(1, 300));
  add(prompted(2, 10));
  admit();
  ASSERT_EQ(batch->prefill().size(), 1U);
  EXPECT_EQ(batch->prefill().front().tokens, 300);
}

TEST_F(BatchOf, PrefillsFitInTheCacheOfThePrefillInstance) {
  begin(disaggregated(1000, 100));
  for (std::uint64_t r = 1; r <= 4; ++r)
    add(prompted(r, 40));
  admit();
  EXPECT_EQ(batch->prefill().size(), 2U);
}

TEST_F(BatchOf, AResponseWithACachedPromptRunsWithoutPrefill) {
  begin(disaggregated(100, 1000));
  BatchRequest of_group = prompted(1, 40);
  add(of_group);
  admit();
  batch->finish_prefill();
  of_group.response = ResponseId(2);
  of_group.group = GroupId(1);
  add(of_group);
  admit();
  EXPECT_TRUE(batch->prefill().empty());
  EXPECT_EQ(batch->running(), 2);
}

TEST_F(BatchOf, WhatWasGeneratedBeforeIsPrefilledWithThePromptThatItAttendsTo) {
  begin(disaggregated(1000, 1000));
  BatchRequest continued = prompted(1, 40);
  continued.prefix = 5;
  add(continued);
  continued.response = ResponseId(2);
  add(continued);
  admit();
  ASSERT_EQ(batch->prefill().size(), 3U);
  EXPECT_EQ(batch->prefill()[1].cached, 0) << "computed together with the prompt";
  EXPECT_EQ(batch->prefill()[2].cached, 40);
}

TEST_F(BatchOf, ACanceledResponseLeavesItsPrefillToNobodyElse) {
  begin(disaggregated(100, 1000));
  add(prompted(1, 40));
  admit();
  batch->cancel(ResponseId(1), ended);
  EXPECT_TRUE(batch->prefill().empty());
  EXPECT_EQ(batch->load(), 0);
}

}  // namespace
}  // namespace temper::rollout
