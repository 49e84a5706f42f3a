#include "actors/policy/reference.hpp"
#include "rollout/torch/engine.hpp"
#include "tests/support/tiny_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace temper::rollout {
namespace {

using actors::FinishReason;
using tests::bytes_of;
using tests::kVocabulary;

TorchEngineOptions options() {
  TorchEngineOptions o;
  o.model = tests::tiny_model();
  o.vocabulary = kVocabulary;
  o.sampling.max_new_tokens = Tokens(10);
  o.seed = 42;
  o.concurrency = 8;
  return o;
}

std::unique_ptr<Engine> engine(const TorchEngineOptions& o = options()) {
  auto made = make_torch_engine(o).value();
  EXPECT_TRUE(made->stage(PolicyVersion(0), bytes_of(tests::tiny_image())));
  EXPECT_TRUE(made->commit(PolicyVersion(0)));
  return made;
}

GenerationRequest request(std::uint64_t id, std::uint64_t prompt) {
  Random random(prompt, "prompt");
  return {ResponseId(id), tests::random_tokens(random, 3 + prompt % 4), {}};
}

using Generations = std::map<std::uint64_t, Generation>;
Generations run(Engine& e) {
  Generations all;
  while (e.load() > 0) {
    auto result = e.step();
    EXPECT_TRUE(result) << result.error().context;
    for (Generation& g : result->finished)
      all[g.id.value()] = std::move(g);
  }
  return all;
}

TEST(TorchRollout, FinishesEveryResponseWithinItsLimits) {
  const auto e = engine();
  for (std::uint64_t id = 0; id < 50; ++id)
    e->add(request(id, id / 4));
  const Generations all = run(*e);
  ASSERT_EQ(all.size(), 50u);
  for (const auto& [id, g] : all) {
    ASSERT_FALSE(g.tokens.empty());
    EXPECT_EQ(g.tokens.size(), g.logprobs.size());
    EXPECT_EQ(g.finish == FinishReason::End, g.tokens.back() == 1);
    EXPECT_TRUE(g.finish == FinishReason::End || g.tokens.size() == 10);
    ASSERT_EQ(g.segments.size(), 1u);
    EXPECT_EQ(g.segments[0].tokens.count(), static_cast<std::int64_t>(g.tokens.size()));
  }
}

TEST(TorchRollout, ASampleDoesNotDependOnItsNeighbours) {
  const auto together = engine();
  for (std::uint64_t id = 0; id < 40; ++id)
    together->add(request(id, id / 4));
  const Generations expected = run(*together);
  TorchEngineOptions alone = options();
  alone.concurrency = 1;
  const auto one_by_one = engine(alone);
  for (std::uint64_t id = 40; id-- > 0;)
    one_by_one->add(request(id, id / 4));
  for (const auto& [id, g] : run(*one_by_one)) {
    EXPECT_EQ(g.tokens, expected.at(id).tokens) << "response " << id;
    for (std::size_t i = 0; i < g.logprobs.size(); ++i)
      EXPECT_NEAR(g.logprobs[i], expected.at(id).logprobs[i], 1e-5);
  }
}

TEST(TorchRollout, ASharedPromptIsPrefilledOnce) {
  const auto e = engine();
  for (std::uint64_t id = 0; id < 8; ++id)
    e->add(request(id, 1));  // A prompt of 4 tokens: 3 are prefilled, the last is decoded.
  const StepResult result = e->step().value();
  EXPECT_EQ(result.kind, StepKind::Prefill);
  EXPECT_EQ(result.tokens, Tokens(3));
  EXPECT_EQ(e->step().value().tokens, Tokens(8));
}

TEST(TorchRollout, RecordedLogprobsAreThoseOfTheReferenceEngine) {
  TorchEngineOptions o = options();
  o.sampling.temperature = 0.8;
  const auto e = engine(o);
  std::vector<actors::ScoringRequest> requests;
  for (std::uint64_t id = 0; id < 20; ++id)
    e->add(request(id, id / 4));
  const Generations all = run(*e);
  for (const auto& [id, g] : all)
    requests.push_back({request(id, id / 4).prompt, g.tokens});
  actors::TorchReferenceOptions r{tests::tiny_model(), kVocabulary, 0.8, Tokens(30)};
  const auto reference = actors::make_torch_reference(r, tests::tiny_weights());
  const auto scores = reference->score(requests).value().logprobs;
  ASSERT_EQ(scores.size(), 20u);
  for (const auto& [id, g] : all) {
    ASSERT_EQ(scores[id].size(), g.logprobs.size());
    for (std::size_t i = 0; i < g.logprobs.size(); ++i)
      EXPECT_NEAR(scores[id][i], g.logprobs[i], 2e-5);
  }
}

TEST(TorchRollout, AWeightsSwapInAResponseMakesTwoSegments) {
  const auto e = engine();
  for (std::uint64_t id = 0; id < 8; ++id)
    e->add(request(id, id));
  for (int i = 0; i < 3; ++i)  // A prefill and two decodes.
    ASSERT_TRUE(e->step());
  ASSERT_TRUE(e->stage(PolicyVersion(1), bytes_of(tests::tiny_image(8))));
  ASSERT_TRUE(e->commit(PolicyVersion(1)));
  EXPECT_EQ(e->version(), PolicyVersion(1));
  bool seen = false;
  for (const auto& [id, g] : run(*e)) {
    const auto n = static_cast<std::int64_t>(g.tokens.size());
    if (n <= 2)
      continue;
    seen = true;
    const std::vector<actors::Segment> expected{{PolicyVersion(0), Tokens(2)},
                                                {PolicyVersion(1), Tokens(n - 2)}};
    EXPECT_EQ(g.segments, expected);
  }
  EXPECT_TRUE(seen);
}

TEST(TorchRollout, AnInterruptedResponseResumesWhereItStopped) {
  const auto whole = engine();
  for (std::uint64_t id = 0; id < 30; ++id)
    whole->add(request(id, id % 5));
  const Generations all = run(*whole);
  const auto longest = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second.tokens.size() < b.second.tokens.size();
  });
  const std::uint64_t id = longest->first;
  const Generation& expected = longest->second;
  ASSERT_GE(expected.tokens.size(), 4u);

  const auto first = engine();
  first->add(request(id, id % 5));
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(first->step());
  const auto parts = first->interrupt();
  EXPECT_EQ(first->load(), 0u);
  ASSERT_EQ(parts.size(), 1u);
  const Generation& part = parts[0];
  EXPECT_EQ(part.finish, FinishReason::Interrupted);
  ASSERT_EQ(part.tokens.size(), 3u);

  const auto second = engine();
  GenerationRequest resumed = request(id, id % 5);
  resumed.prefix = part.tokens;
  second->add(resumed);
  const Generation rest = run(*second).at(id);
  auto tokens = part.tokens;
  tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
  EXPECT_EQ(tokens, expected.tokens);
}

TEST(TorchRollout, AWithdrawnResponseLeavesTheOthersAlone) {
  TorchEngineOptions o = options();
  o.concurrency = 2;
  const auto e = engine(o);
  const auto alone = engine(o);
  for (std::uint64_t id = 0; id < 3; ++id)
    e->add(request(id, id));
  alone->add(request(1, 1));
  ASSERT_TRUE(e->step());
  const std::vector<ResponseId> leaving{ResponseId(0), ResponseId(2), ResponseId(7)};
  const auto parts = e->withdraw(leaving);
  ASSERT_EQ(parts.size(), 2u) << "one running and one queued";
  for (const Generation& part : parts)
    EXPECT_EQ(part.finish, FinishReason::Interrupted);
  const Generations rest = run(*e);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest.at(1).tokens, run(*alone).at(1).tokens);
}

TEST(TorchRollout, OldestFirstAnOlderResponseEntersBeforeAYoungerThatWaitsLonger) {
  for (const bool deadline_first : {false, true}) {
    TorchEngineOptions o = options();
    o.concurrency = 1;
    o.deadline_first = deadline_first;
    const auto e = engine(o);
    e->add(request(9, 9));
    e->add(request(2, 2));
    std::vector<std::uint64_t> ended;
    while (e->load() > 0) {
      const auto result = e->step();
      ASSERT_TRUE(result);
      for (const Generation& g : result->finished)
        ended.push_back(g.id.value());
    }
    const std::vector<std::uint64_t> by_id{2, 9}, by_arrival{9, 2};
    EXPECT_EQ(ended, deadline_first ? by_id : by_arrival);
  }
}

TEST(TorchRollout, InterruptTakesQueuedResponsesToo) {
  TorchEngineOptions o = options();
  o.concurrency = 2;
  const auto e = engine(o);
  for (std::uint64_t id = 0; id < 5; ++id)
    e->add(request(id, id));
  ASSERT_TRUE(e->step());
  EXPECT_EQ(e->interrupt().size(), 5u);
  e->add(request(9, 1));
  EXPECT_EQ(run(*e).size(), 1u) << "all slots are free again";
}

TEST(TorchRollout, CancelledResponsesAreForgotten) {
  const auto e = engine();
  for (std::uint64_t id = 0; id < 20; ++id)
    e->add(request(id, id));
  ASSERT_TRUE(e->step());
  const std::vector<ResponseId> ids{ResponseId(0), ResponseId(3), ResponseId(19), ResponseId(99)};
  e->cancel(ids);
  const Generations all = run(*e);
  EXPECT_EQ(all.size(), 17u);
  EXPECT_FALSE(all.contains(0) || all.contains(3) || all.contains(19));
}

TEST(TorchRollout, WhatCannotBeGeneratedFailsAlone) {
  const auto e = engine();
  e->add({ResponseId(0), {}, {}});
  e->add({ResponseId(1), {2, kVocabulary}, {}});
  e->add({ResponseId(2), std::vector<std::int32_t>(24, 3), {}});
  e->add({ResponseId(3), {2, 3}, std::vector<std::int32_t>(10, 4)});
  e->add(request(4, 1));
  const Generations all = run(*e);
  ASSERT_EQ(all.size(), 5u);
  for (std::uint64_t id = 0; id < 3; ++id)
    EXPECT_EQ(all.at(id).finish, FinishReason::Failed);
  EXPECT_EQ(all.at(3).finish, FinishReason::Length) << "its prefix is already complete";
  EXPECT_FALSE(all.at(4).tokens.empty());
}

TEST(TorchRollout, CommitTakesOnlyWhatWasStagedAndNeverGoesBack) {
  const auto e = engine();
  EXPECT_FALSE(e->commit(PolicyVersion(1)));
  ASSERT_TRUE(e->stage(PolicyVersion(2), bytes_of(tests::tiny_image())));
  EXPECT_FALSE(e->commit(PolicyVersion(1)));
  ASSERT_TRUE(e->commit(PolicyVersion(2)));
  ASSERT_TRUE(e->stage(PolicyVersion(1), bytes_of(tests::tiny_image())));
  EXPECT_FALSE(e->commit(PolicyVersion(1)));
  std::string broken = tests::tiny_image();
  broken.resize(broken.size() - 1);
  const Status status = e->stage(PolicyVersion(3), bytes_of(broken));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("head.weight"), std::string::npos);
}

TEST(TorchRollout, FreedMemoryIsReportedAndComesBack) {
  const auto e = engine();
  // 2 layers, 8 slots, 24 positions, keys and values of 2 heads of 4 floats.
  EXPECT_EQ(e->memory().kv, Bytes(2 * 8 * 24 * 2 * 8 * 4));
  e->add(request(1, 1));
  EXPECT_FALSE(e->free_kv()) << "the engine is not idle";
  EXPECT_FALSE(e->free_weights()) << "the engine is not idle";
  const Generation before = run(*e).at(1);
  ASSERT_TRUE(e->free_kv());
  ASSERT_TRUE(e->free_weights());
  EXPECT_EQ(e->memory().kv, Bytes(0));
  EXPECT_EQ(e->memory().weights, Bytes(0));
  e->add(request(1, 1));
  EXPECT_FALSE(e->step()) << "no weights or no cache";
  e->interrupt();
  ASSERT_TRUE(e->allocate_kv());
  ASSERT_TRUE(e->stage(PolicyVersion(0), bytes_of(tests::tiny_image())));
  ASSERT_TRUE(e->commit(PolicyVersion(0)));
  e->add(request(1, 1));
  EXPECT_EQ(run(*e).at(1).tokens, before.tokens);
}

}  // namespace
}  // namespace temper::rollout
