// Responses that were sampled with several versions: the policy of their recorded log-probs,
// compared with the reference engine for each version's weights.
#include "actors/policy/reference.hpp"
#include "rollout/torch/engine.hpp"
#include "tests/support/tiny_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace temper::rollout {
namespace {

using actors::FinishReason;
using tests::bytes_of;

constexpr std::uint64_t kResponses = 24;

TorchEngineOptions mixed_options(OnNewWeights on_new_weights) {
  TorchEngineOptions o;
  o.model = tests::tiny_model();
  o.vocabulary = tests::kVocabulary;
  o.end_tokens = {0};  // Rarely sampled, so responses are long.
  o.sampling.max_new_tokens = Tokens(14);
  o.seed = 42;
  o.concurrency = 32;
  o.on_new_weights = on_new_weights;
  return o;
}

/// Version v has the weights of seed 7 + v.
void load(Engine& e, std::uint64_t version) {
  ASSERT_TRUE(e.stage(PolicyVersion(version), bytes_of(tests::tiny_image(7 + version))));
  ASSERT_TRUE(e.commit(PolicyVersion(version)));
}

/// Two responses per prompt.
GenerationRequest mixed_request(std::uint64_t id) {
  Random random(id / 2, "prompt");
  return {ResponseId(id), tests::random_tokens(random, 2 + (id / 2) % 5), {}};
}

/// A response over all its attempts.
struct Whole {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::uint64_t> versions;  ///< By token.
  bool done = false;

  void append(const Generation& part) {
    tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
    logprobs.insert(logprobs.end(), part.logprobs.begin(), part.logprobs.end());
    for (const actors::Segment& s : part.segments)
      versions.insert(
          versions.end(), static_cast<std::size_t>(s.tokens.count()), s.version.value());
    done = part.finish != FinishReason::Interrupted;
  }
};
using Responses = std::map<std::uint64_t, Whole>;

void steps(Engine& e, int most, Responses& responses) {
  for (int i = 0; i < most && e.load() > 0; ++i) {
    const auto result = e.step();
    ASSERT_TRUE(result) << result.error().context;
    for (const Generation& g : result->finished)
      responses[g.id.value()].append(g);
  }
}

/// Largest difference between recorded log-probs and those of their version's policy, by version;
/// counts tokens that follow tokens of another version.
struct Gaps {
  std::map<std::uint64_t, double> largest;
  int after_another = 0;
};

Gaps gaps(const Responses& responses, std::uint64_t versions) {
  Gaps out;
  std::vector<actors::ScoringRequest> requests;
  for (const auto& [id, r] : responses) {
    EXPECT_EQ(r.tokens.size(), r.logprobs.size());
    EXPECT_EQ(r.tokens.size(), r.versions.size());
    requests.push_back({mixed_request(id).prompt, r.tokens});
    for (std::size_t t = 0; t < r.versions.size(); ++t)
      out.after_another += r.versions[t] != r.versions[0] ? 1 : 0;
  }
  for (std::uint64_t v = 0; v < versions; ++v) {
    const actors::TorchReferenceOptions o{
        tests::tiny_model(), tests::kVocabulary, 1.0, Tokens(200)};
    const auto engine = actors::make_torch_reference(o, tests::tiny_weights(7 + v));
    const auto scores = engine->score(requests).value().logprobs;
    std::size_t i = 0;
    for (const auto& [id, r] : responses) {
      for (std::size_t t = 0; t < r.tokens.size(); ++t) {
        if (r.versions[t] == v)
          out.largest[v] =
              std::max(out.largest[v], std::abs(static_cast<double>(scores[i][t] - r.logprobs[t])));
      }
      ++i;
    }
  }
  return out;
}

TEST(MixedVersions, AnInterruptedResponsesLogprobsAreThoseOfEachVersion) {
  Responses responses;
  for (std::uint64_t v = 0; v < 3; ++v) {
    const auto e = make_torch_engine(mixed_options(OnNewWeights::KeepKv)).value();
    load(*e, v);
    for (std::uint64_t id = 0; id < kResponses; ++id) {
      if (responses[id].done)
        continue;
      GenerationRequest r = mixed_request(id);
      r.prefix = responses[id].tokens;
      e->add(std::move(r));
    }
    steps(*e, v < 2 ? 5 : 1000, responses);
    for (const Generation& part : e->interrupt())
      responses[part.id.value()].append(part);
  }
  for (const auto& [id, r] : responses)
    EXPECT_TRUE(r.done) << id;
  const Gaps g = gaps(responses, 3);
  ASSERT_EQ(g.largest.size(), 3u);
  EXPECT_GT(g.after_another, 50);
  for (const auto& [version, largest] : g.largest)
    EXPECT_LT(largest, 2e-5) << "version " << version;
}

/// Two commits while responses run; some responses enter between them.
Responses with_commits(const TorchEngineOptions& o) {
  Responses responses;
  const auto e = make_torch_engine(o).value();
  load(*e, 0);
  for (std::uint64_t id = 0; id < kResponses; ++id)
    e->add(mixed_request(id));
  steps(*e, 5, responses);
  load(*e, 1);
  for (std::uint64_t id = kResponses; id < kResponses + 6; ++id)
    e->add(mixed_request(id));
  steps(*e, 5, responses);
  load(*e, 2);
  steps(*e, 1000, responses);
  EXPECT_EQ(responses.size(), kResponses + 6);
  return responses;
}

TEST(MixedVersions, AfterRecomputingLogprobsAreThoseOfTheNewPolicy) {
  const Gaps g = gaps(with_commits(mixed_options(OnNewWeights::Recompute)), 3);
  ASSERT_EQ(g.largest.size(), 3u);
  EXPECT_GT(g.after_another, 50);
  for (const auto& [version, largest] : g.largest)
    EXPECT_LT(largest, 2e-5) << "version " << version;
}

TEST(MixedVersions, WithTheCacheKeptTheyAreOfNeitherPolicy) {
  const Gaps g = gaps(with_commits(mixed_options(OnNewWeights::KeepKv)), 3);
  EXPECT_LT(g.largest.at(0), 2e-5);
  EXPECT_GT(g.largest.at(1), 1e-2);
  EXPECT_GT(g.largest.at(2), 1e-2);
}

TEST(MixedVersions, FinishingEachResponseIsOfTheVersionThatBeganIt) {
  const Responses responses = with_commits(mixed_options(OnNewWeights::Finish));
  std::set<std::uint64_t> first_versions;
  for (const auto& [id, r] : responses) {
    EXPECT_EQ(std::set(r.versions.begin(), r.versions.end()).size(), 1u) << id;
    first_versions.insert(r.versions.at(0));
  }
  EXPECT_EQ(first_versions, (std::set<std::uint64_t>{0, 1}));
  const Gaps g = gaps(responses, 2);
  EXPECT_EQ(g.after_another, 0);
  for (const auto& [version, largest] : g.largest)
    EXPECT_LT(largest, 2e-5) << "version " << version;
}

/// A response without commits samples the same tokens.
TEST(MixedVersions, FinishingIsNotChangedByWhatOtherVersionsDo) {
  TorchEngineOptions o = mixed_options(OnNewWeights::Finish);
  const Responses with_others = with_commits(o);
  const auto alone = make_torch_engine(o).value();
  load(*alone, 0);
  for (std::uint64_t id = 0; id < kResponses; ++id)
    alone->add(mixed_request(id));
  Responses expected;
  steps(*alone, 1000, expected);
  for (std::uint64_t id = 0; id < kResponses; ++id)
    EXPECT_EQ(with_others.at(id).tokens, expected.at(id).tokens) << id;
}

TEST(MixedVersions, FinishingHoldsTheVersionsThatHaveResponses) {
  const auto e = make_torch_engine(mixed_options(OnNewWeights::Finish)).value();
  load(*e, 0);
  const Bytes one = e->memory().weights;
  Responses responses;
  e->add({ResponseId(0), {2, 3, 4, 5}, {}, Tokens(4)});
  steps(*e, 2, responses);  // A prefill and a decode.
  load(*e, 1);
  EXPECT_EQ(e->memory().weights, one + one);
  load(*e, 2);
  EXPECT_EQ(e->memory().weights, one + one) << "no response began under version 1";
  e->add({ResponseId(1), {2, 3, 4, 5}, {}, Tokens(8)});
  steps(*e, 1000, responses);
  EXPECT_EQ(responses.at(0).versions, std::vector<std::uint64_t>(4, 0));
  EXPECT_EQ(responses.at(1).versions, std::vector<std::uint64_t>(8, 2));
  EXPECT_EQ(e->memory().weights, one);
}

TEST(MixedVersions, AWithdrawnResponseNoLongerHoldsItsVersion) {
  const auto e = make_torch_engine(mixed_options(OnNewWeights::Finish)).value();
  load(*e, 0);
  const Bytes one = e->memory().weights;
  Responses responses;
  e->add(mixed_request(0));
  e->add(mixed_request(1));
  steps(*e, 3, responses);
  load(*e, 1);
  EXPECT_EQ(e->memory().weights, one + one);
  e->cancel(std::vector{ResponseId(0), ResponseId(1)});
  EXPECT_EQ(e->memory().weights, one);
}

TEST(MixedVersions, RecomputingInPartsIsTheSame) {
  TorchEngineOptions o = mixed_options(OnNewWeights::Recompute);
  const Responses whole = with_commits(o);
  o.prefill_tokens = Tokens(20);
  const Gaps g = gaps(with_commits(o), 3);
  for (const auto& [version, largest] : g.largest)
    EXPECT_LT(largest, 2e-5) << "version " << version;
  EXPECT_LT(gaps(whole, 3).largest.at(2), 2e-5);
}

TEST(MixedVersions, RecomputingIsAPrefillOfWhatRunsWithEachPromptOnce) {
  const auto e = make_torch_engine(mixed_options(OnNewWeights::Recompute)).value();
  load(*e, 0);
  // Two responses to a prompt of 4 tokens; after three decodes, each has 6 cached positions.
  e->add({ResponseId(0), {2, 3, 4, 5}, {}});
  e->add({ResponseId(1), {2, 3, 4, 5}, {}});
  Responses responses;
  steps(*e, 4, responses);
  load(*e, 1);
  const StepResult result = e->step().value();
  EXPECT_EQ(result.kind, StepKind::Prefill);
  EXPECT_EQ(result.tokens, Tokens(3 + 2 * 3));
  EXPECT_EQ(e->step().value().kind, StepKind::Decode);
}

}  // namespace
}  // namespace temper::rollout
