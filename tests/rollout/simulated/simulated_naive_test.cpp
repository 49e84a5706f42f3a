// Compares the closed form of the simulated engine with a simulation that takes every decode step
// of every response.
#include "tests/rollout/simulated/naive_engine.hpp"

#include <cmath>

namespace temper::rollout {
namespace {

/// Caches that left the device.
struct Moved {
  std::int64_t parked = 0;                  ///< In host memory.
  std::int64_t evicted = 0;                 ///< Of responses that were not running.
  std::int64_t drafted = 0, undrafted = 0;  ///< Steps of one token with and without drafts.
};

/// Adds to `moved`.
void expect_the_same(const actors::SimulationSettings& s,
                     const std::vector<Scheduled>& messages,
                     std::uint64_t seed,
                     Moved& moved,
                     OnNewWeights on_new_weights = OnNewWeights::KeepKv) {
  World world(s, seed, on_new_weights);
  world.run(messages);
  const Time ready = world.sent().front().at;
  NaiveEngine naive(s, seed, on_new_weights);
  naive.run(messages, seconds(ready));

  std::vector<NaivelyFinished> finished;
  for (const Sent& sent : world.sent()) {
    if (!sent.is<actors::CountedGenerated>())
      continue;
    for (const auto& item : sent.as<actors::CountedGenerated>().items)
      finished.push_back({item.response, item.tokens.count(), seconds(sent.at), item.segments});
  }
  for (const auto& answer : world.all<actors::WeightsCommitted>())
    ASSERT_EQ(answer.error, "");
  ASSERT_EQ(finished.size(), naive.finished.size());
  const auto counters = world.actor().counters();
  const double tokens_per_step = sim_hw::accepted_tokens(s.config.rollout.speculation.acceptance,
                                                         actors::engine_drafts(s).depth);
  const auto drafted = static_cast<double>(naive.steps - naive.undrafted);
  moved.drafted += naive.steps - naive.undrafted;
  moved.undrafted += naive.undrafted;
  EXPECT_EQ(counters.decode_steps,
            naive.undrafted + static_cast<std::int64_t>(std::ceil(drafted / tokens_per_step)));
  EXPECT_EQ(counters.prefill_steps, naive.prefills);
  EXPECT_EQ(counters.preemptions, naive.preemptions);
  moved.parked += naive.parked;
  moved.evicted += naive.evicted;
  EXPECT_EQ(counters.most_blocks, naive.most_blocks);
  EXPECT_LE(counters.most_blocks, counters.blocks);
  // At most one nanosecond per step, and rounding errors of doubles over the steps.
  const double near = 1e-9 * static_cast<double>(naive.steps + naive.prefills) +
                      1e-12 * naive.finished.back().seconds;
  for (std::size_t i = 0; i < finished.size(); ++i) {
    ASSERT_EQ(finished[i].response, naive.finished[i].response) << i;
    ASSERT_EQ(finished[i].tokens, naive.finished[i].tokens) << i;
    ASSERT_EQ(finished[i].segments, naive.finished[i].segments) << i;
    ASSERT_NEAR(finished[i].seconds, naive.finished[i].seconds, near) << i;
  }
}

TEST(SimulatedRollout, FinishesWhatTheNaiveSimulationDoesWhenItDoes) {
  Moved moved;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(small_engine(), arriving(work(12, 8), 0, 20, seed), seed, moved);
  }
  EXPECT_EQ(moved.parked, 0);
}

TEST(SimulatedRollout, ParksWhatItPreemptsAsTheNaiveSimulationDoes) {
  Moved moved;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    auto s = small_engine();
    limit_cache(s, 3000);
    expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, moved);
  }
  EXPECT_GT(moved.parked, 50);
}

TEST(SimulatedRollout, ComputesWhatItPreemptsAgainOverASlowHostLink) {
  Moved moved;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    auto s = small_engine();
    limit_cache(s, 3000);
    s.cluster.host.from_device = BytesPerSecond(1e6);
    expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, moved);
    World world(s, seed);
    world.run(arriving(work(12, 8), 0, 20, seed));
    EXPECT_GT(world.actor().counters().preemptions, 0);
  }
  EXPECT_EQ(moved.parked, 0);
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithOneReplicaAndOddBlocks) {
  Moved moved;
  auto s = small_engine();
  s.config.rollout.tp = 4;
  s.config.rollout.block = 7;
  s.concurrency = 5;
  limit_cache(s, 2500);
  expect_the_same(s, arriving(work(10, 4), 0, 30, 3), 3, moved);
  s.config.rollout.block = 1;
  expect_the_same(s, arriving(work(10, 4), 0, 30, 4), 4, moved);
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithPrefixes) {
  Moved moved;
  auto s = small_engine();
  limit_cache(s, 4000);
  auto messages = work(10, 6);
  Random random(5, "prefixes");
  for (auto& m : messages) {
    for (auto& item : m.items)
      item.prefix = Tokens(static_cast<std::int64_t>(random.below(20)));
  }
  // A prefix is shorter than its response.
  s.config.response.kind = actors::LengthKind::Histogram;
  s.config.response.weights = {0, 1, 1, 0, 1};
  s.config.response.width = Tokens(100);
  expect_the_same(s, arriving(messages, 0, 10, 6), 6, moved);
}

/// Work for 20 s, three new versions meanwhile, and canceled responses.
std::vector<Scheduled> life(std::uint64_t seed) {
  auto messages = arriving(work(16, 8), 0, 20, seed);
  Random random(seed, "life");
  for (std::uint64_t v = 1; v <= 3; ++v) {
    const double from = 6 * static_cast<double>(v) + random.uniform();
    actors::StageWeights stage;
    stage.weights.version = PolicyVersion(v);
    messages.push_back(at(time_of(from), stage));
    messages.push_back(at(time_of(from + 4), actors::CommitWeights{PolicyVersion(v)}));
  }
  for (int i = 0; i < 20; ++i) {
    messages.push_back(
        at(time_of(25 * random.uniform()),
           actors::Cancel{{ResponseId(random.below(128)), ResponseId(random.below(128))}}));
  }
  std::stable_sort(
      messages.begin(), messages.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return messages;
}

using Ways = std::initializer_list<OnNewWeights>;
constexpr Ways kAllWays{OnNewWeights::KeepKv, OnNewWeights::Recompute, OnNewWeights::Finish};
constexpr Ways kKeepOrFinish{OnNewWeights::KeepKv, OnNewWeights::Finish};

/// Work alone, and a life under each of these ways to treat new weights.
void expect_the_same_lives(const actors::SimulationSettings& s,
                           std::uint64_t seed,
                           Moved& moved,
                           const Ways& ways) {
  expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, moved);
  for (const OnNewWeights way : ways)
    expect_the_same(s, life(seed), seed, moved, way);
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationThroughVersionsAndCancels) {
  Moved moved;
  auto s = small_engine();
  limit_cache(s, 3500);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(s, life(seed), seed, moved);
    expect_the_same(s, life(seed), seed, moved, OnNewWeights::Recompute);
    expect_the_same(s, life(seed), seed, moved, OnNewWeights::Finish);
  }
}

/// An engine with latent attention, whose steps are affine in the context with drafts too.
actors::SimulationSettings drafting_engine() {
  auto s = small_engine();
  s.model = **sim_hw::Catalog::shipped().model("deepseek-v3");
  s.model.layers = 4;
  s.config.trainer.mtp = true;
  s.config.rollout.weights = sim_hw::WeightFormat::Int8;
  s.config.rollout.kv_cache = sim_hw::CacheFormat::Int8;
  s.config.rollout.speculation = {2, 0.6};
  return s;
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithDraftsIn8Bits) {
  Moved moved;
  auto s = drafting_engine();
  limit_cache(s, 3500);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same_lives(s, seed, moved, kKeepOrFinish);
  }
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithDraftsForSmallBatchesOnly) {
  using sim_hw::Draft;
  for (const Draft method : {Draft::Mtp, Draft::Eagle, Draft::Ngram}) {
    Moved moved;
    auto s = drafting_engine();
    s.config.rollout.speculation.method = method;
    s.config.rollout.speculation.disable_by_batch_size = 6;
    limit_cache(s, 3500);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(seed);
      expect_the_same_lives(s, seed, moved, kKeepOrFinish);
    }
    EXPECT_GT(moved.drafted, 500);
    EXPECT_GT(moved.undrafted, 500);
  }
}

/// Turns of 60 tokens, answers of 40 after 3 s, each spread.
actors::SimulationSettings spread_calls_engine() {
  auto s = small_engine();
  actors::ToolConfig& tools = s.config.tools.emplace();
  tools.turn.mean = 60;
  tools.result.mean = 40;
  tools.latency.mean = std::chrono::seconds(3);
  return s;
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationThroughToolCalls) {
  Moved moved;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    auto s = spread_calls_engine();
    expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, moved);
    EXPECT_EQ(moved.parked, 0);
    expect_the_same(s, life(seed), seed, moved);
    expect_the_same(s, life(seed), seed, moved, OnNewWeights::Finish);
  }
}

TEST(SimulatedRollout, ParksTheCachesOfCallersWhenOthersNeedTheBlocks) {
  Moved moved;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    auto s = spread_calls_engine();
    limit_cache(s, 2500);
    expect_the_same_lives(s, seed, moved, kAllWays);
  }
  EXPECT_GT(moved.evicted, 100);
}

TEST(SimulatedRollout, LetsCallsBeyondThePoolWaitAsTheNaiveSimulationDoes) {
  Moved moved;
  auto s = spread_calls_engine();
  for (const std::int64_t pool : {1, 5}) {
    s.config.tools->pool = pool;
    s.config.tools->failure_rate = 0.2;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(seed);
      expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, moved);
    }
  }
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithChunkedPrefill) {
  Moved moved;
  for (auto s : {small_engine(), spread_calls_engine(), drafting_engine()}) {
    s.config.rollout.chunked_prefill = true;
    for (const std::int64_t cache : {3500, 100000}) {
      limit_cache(s, cache);
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(seed);
        expect_the_same_lives(s, seed, moved, kAllWays);
      }
    }
  }
  EXPECT_GT(moved.evicted, 100);
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithDisaggregatedPrefill) {
  Moved moved;
  for (auto s : {small_engine(), spread_calls_engine(), drafting_engine()}) {
    s.cards = 4;
    s.rollout_cards = 8;
    s.config.rollout.prefill_cards = 2;
    for (const std::int64_t cache : {3500, 100000}) {
      limit_cache(s, cache);
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(seed);
        expect_the_same_lives(s, seed, moved, kKeepOrFinish);
      }
    }
  }
  EXPECT_GT(moved.evicted, 100);
  EXPECT_GT(moved.parked, 50);
}

/// One prefill replica for two that decode: its cache, not its steps, limits batches of results.
TEST(SimulatedRollout, FollowsTheNaiveSimulationWithASmallPrefillInstance) {
  Moved moved;
  auto s = spread_calls_engine();
  s.cards = 3;
  s.rollout_cards = 6;
  s.config.rollout.prefill_cards = 1;
  s.config.rollout.prefill_tokens = 20000;
  s.cluster.host.from_device = BytesPerSecond(1e6);  // Evicted caches are computed again.
  limit_cache(s, 5000);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(s, arriving(work(16, 8), 0, 8, seed), seed, moved);
  }
  EXPECT_GT(moved.evicted, 100);
  EXPECT_EQ(moved.parked, 0);
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithAnAdapter) {
  Moved moved;
  auto s = drafting_engine();
  s.adapter =
      sim_hw::make_adapter(s.model, 8, std::vector<std::string>{"kv_b_proj", "o_proj", "up_proj"})
          .value();
  limit_cache(s, 3500);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, moved);
    expect_the_same(s, life(seed), seed, moved, OnNewWeights::Finish);
  }
}

}  // namespace
}  // namespace temper::rollout
