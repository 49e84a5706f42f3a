// The closed form of the simulated engine against a simulation that takes every decode step of
// every response one by one.
#include "actors/simulation/costs.hpp"
#include "tests/rollout/simulated_world.hpp"

#include <cmath>
#include <map>

namespace temper::rollout {
namespace {

struct Finished {
  ResponseId response;
  std::int64_t tokens = 0;
  double seconds = 0;
};

/// Written from the rules in batch.hpp and engine_cost.hpp, with none of its bookkeeping.
class Naive {
 public:
  explicit Naive(const actors::SimulationSettings& s, std::uint64_t seed)
      : s_(s),
        cost_(s),
        device_(sim_hw::make_device(s.cluster)),
        fabric_(sim_hw::make_fabric(s.cluster)),
        layout_(actors::rollout_layout(s)),
        model_(sim_hw::make_step_model(s.model, layout_.tp, layout_.ep)),
        prompts_(s.config.prompt, seed, actors::kPromptLengths),
        responses_(s.config.response, seed, actors::kResponseLengths) {
    replicas_ = static_cast<std::int64_t>(layout_.dp);
    layout_.dp = layout_.ep / layout_.tp;
    capacity_ = actors::kv_tokens(s).count() / s.config.rollout.block * replicas_;
  }

  void run(const std::vector<Scheduled>& messages, double start) {
    now_ = start;
    std::size_t next = 0;
    while (true) {
      for (; next < messages.size() && seconds(messages[next].at) <= now_; ++next)
        arrive(messages[next]);
      admit();
      if (!pieces_.empty()) {
        now_ += cost_.prefill(pieces_);
        cost_.finish_prefill(pieces_);
        ++prefills;
      } else if (!running_.empty()) {
        step();
      } else if (next < messages.size()) {
        now_ = seconds(messages[next].at);
      } else {
        break;
      }
    }
  }

  std::vector<Finished> finished;
  std::int64_t steps = 0;
  std::int64_t prefills = 0;
  std::int64_t preemptions = 0;
  std::int64_t most_blocks = 0;
  std::int64_t parked = 0;

 private:
  struct Response {
    ResponseId id;
    std::uint64_t group = 0;
    std::int64_t prompt = 0;
    std::int64_t prefix = 0;
    std::int64_t done = 0;
    std::int64_t length = 0;
    bool parked = false;
  };

  void arrive(const Scheduled& s) {
    const auto m = *actors::IncomingMessage::from(s.message).decode<actors::CountedGenerate>();
    for (const auto& item : m.items)
      waiting_.push_back({item.response,
                          m.group.value(),
                          prompts_.of(m.group.value()).count(),
                          item.prefix.count(),
                          item.prefix.count(),
                          responses_.of(item.response.value()).count()});
  }

  /// With room for one more token of each.
  std::int64_t blocks_of(const std::vector<Response>& responses) const {
    const std::int64_t block = s_.config.rollout.block;
    std::map<std::uint64_t, std::int64_t> prompts;
    std::int64_t blocks = 0;
    for (const Response& r : responses) {
      prompts[r.group] = r.prompt / block;
      const std::int64_t own = r.prompt % block + r.done + 1;
      blocks += (own + block - 1) / block;
    }
    for (const auto& [group, shared] : prompts)
      blocks += shared;
    return blocks;
  }

  void admit() {
    while (!waiting_.empty()) {
      const Response r = waiting_.front();
      if (static_cast<std::int64_t>(running_.size()) >= s_.concurrency)
        return;
      auto with = running_;
      with.push_back(r);
      const std::int64_t keep = running_.empty() ? 0 : capacity_ / 100;
      if (blocks_of(with) + keep > capacity_)
        return;
      const bool first = std::none_of(
          running_.begin(), running_.end(), [&](const Response& o) { return o.group == r.group; });
      if (first)
        pieces_.push_back({r.prompt, 0});
      if (r.done > 0)
        pieces_.push_back({r.done, r.prompt, r.parked});
      with.back().parked = false;
      running_ = std::move(with);
      waiting_.pop_front();
    }
  }

  void step() {
    while (blocks_of(running_) > capacity_) {
      waiting_.push_front(running_.back());
      Response& r = waiting_.front();
      r.parked = r.done > 0 && cost_.parks({r.done, r.prompt});
      parked += r.parked ? 1 : 0;
      running_.pop_back();
      ++preemptions;
    }
    most_blocks = std::max(most_blocks, blocks_of(running_));
    double context = 0;
    for (const Response& r : running_)
      context += static_cast<double>(r.prompt + r.done);
    const auto all = static_cast<double>(running_.size());
    const double batch = std::ceil(all / static_cast<double>(replicas_));
    now_ += sim_hw::parallel_decode_seconds(
        device_, fabric_, model_, layout_, {batch, batch, context / all});
    ++steps;
    for (Response& r : running_) {
      if (++r.done == r.length)
        finished.push_back({r.id, r.done - r.prefix, now_});
    }
    std::erase_if(running_, [](const Response& r) { return r.done == r.length; });
  }

  actors::SimulationSettings s_;
  EngineCost cost_;
  sim_hw::Device device_;
  sim_hw::Fabric fabric_;
  sim_hw::RolloutLayout layout_;
  sim_hw::StepModel model_;
  actors::Lengths prompts_;
  actors::Lengths responses_;
  std::int64_t replicas_ = 1;
  std::int64_t capacity_ = 0;
  double now_ = 0;
  std::deque<Response> waiting_;
  std::vector<Response> running_;
  std::deque<PrefillPiece> pieces_;
};

/// Adds the responses parked on the host to `parked`.
void expect_the_same(const actors::SimulationSettings& s,
                     const std::vector<Scheduled>& messages,
                     std::uint64_t seed,
                     std::int64_t& parked) {
  World world(s, seed);
  world.run(messages);
  const Time ready = world.sent().front().at;
  Naive naive(s, seed);
  naive.run(messages, seconds(ready));

  std::vector<Finished> finished;
  for (const Sent& sent : world.sent()) {
    if (!sent.is<actors::CountedGenerated>())
      continue;
    for (const auto& item : sent.as<actors::CountedGenerated>().items)
      finished.push_back({item.response, item.tokens.count(), seconds(sent.at)});
  }
  ASSERT_EQ(finished.size(), naive.finished.size());
  const auto counters = world.actor().counters();
  EXPECT_EQ(counters.decode_steps, naive.steps);
  EXPECT_EQ(counters.prefill_steps, naive.prefills);
  EXPECT_EQ(counters.preemptions, naive.preemptions);
  parked += naive.parked;
  EXPECT_EQ(counters.most_blocks, naive.most_blocks);
  EXPECT_LE(counters.most_blocks, counters.blocks);
  // A nanosecond for each step at most, and what doubles lose over the steps.
  const double near = 1e-9 * static_cast<double>(naive.steps + naive.prefills) +
                      1e-12 * naive.finished.back().seconds;
  for (std::size_t i = 0; i < finished.size(); ++i) {
    ASSERT_EQ(finished[i].response, naive.finished[i].response) << i;
    ASSERT_EQ(finished[i].tokens, naive.finished[i].tokens) << i;
    ASSERT_NEAR(finished[i].seconds, naive.finished[i].seconds, near) << i;
  }
}

TEST(SimulatedRollout, FinishesWhatTheNaiveSimulationDoesWhenItDoes) {
  std::int64_t parked = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(small_engine(), arriving(work(12, 8), 0, 20, seed), seed, parked);
  }
  EXPECT_EQ(parked, 0);
}

TEST(SimulatedRollout, ParksWhatItPreemptsAsTheNaiveSimulationDoes) {
  std::int64_t parked = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    auto s = small_engine();
    limit_cache(s, 3000);
    expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, parked);
  }
  EXPECT_GT(parked, 50);
}

TEST(SimulatedRollout, ComputesWhatItPreemptsAgainOverASlowHostLink) {
  std::int64_t parked = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    auto s = small_engine();
    limit_cache(s, 3000);
    s.cluster.host.from_device = BytesPerSecond(1e6);
    expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, parked);
    World world(s, seed);
    world.run(arriving(work(12, 8), 0, 20, seed));
    EXPECT_GT(world.actor().counters().preemptions, 0);
  }
  EXPECT_EQ(parked, 0);
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithOneReplicaAndOddBlocks) {
  std::int64_t parked = 0;
  auto s = small_engine();
  s.config.rollout.tp = 4;
  s.config.rollout.block = 7;
  s.concurrency = 5;
  limit_cache(s, 2500);
  expect_the_same(s, arriving(work(10, 4), 0, 30, 3), 3, parked);
  s.config.rollout.block = 1;
  expect_the_same(s, arriving(work(10, 4), 0, 30, 4), 4, parked);
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithPrefixes) {
  std::int64_t parked = 0;
  auto s = small_engine();
  limit_cache(s, 4000);
  auto messages = work(10, 6);
  Random random(5, "prefixes");
  for (auto& m : messages) {
    for (auto& item : m.items)
      item.prefix = Tokens(static_cast<std::int64_t>(random.below(20)));
  }
  // A prefix is shorter than the response it belongs to.
  s.config.response.kind = actors::LengthKind::Histogram;
  s.config.response.weights = {0, 1, 1, 0, 1};
  s.config.response.width = Tokens(100);
  expect_the_same(s, arriving(messages, 0, 10, 6), 6, parked);
}

}  // namespace
}  // namespace temper::rollout
