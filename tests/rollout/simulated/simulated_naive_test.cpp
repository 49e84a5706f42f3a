// Compares the closed form of the simulated engine with a simulation that takes every decode step
// of every response.
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"

#include <cmath>
#include <map>
#include <utility>

namespace temper::rollout {
namespace {

struct Finished {
  ResponseId response;
  std::int64_t tokens = 0;
  double seconds = 0;
  std::vector<actors::Segment> segments;
};

/// Written from the rules in batch.hpp and engine_cost.hpp, without any of its data structures.
class Naive {
 public:
  Naive(const actors::SimulationSettings& s, std::uint64_t seed, OnNewWeights on_new_weights)
      : s_(s),
        on_new_weights_(on_new_weights),
        cost_(s),
        device_(sim_hw::make_device(s.cluster, s.config.rollout.formats())),
        fabric_(sim_hw::make_fabric(s.cluster)),
        layout_(actors::rollout_layout(s)),
        model_(sim_hw::make_step_model(s.model, layout_.tp, layout_.ep, s.adapter)),
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
  std::int64_t steps = 0;  ///< Of one token each.
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
    std::vector<actors::Segment> segments = {};
    std::optional<PolicyVersion> began = {};  ///< When it entered first.
  };

  void arrive(const Scheduled& s) {
    const auto message = actors::IncomingMessage::from(s.message);
    if (message.is<actors::CountedGenerate>())
      generate(*message.decode<actors::CountedGenerate>());
    if (message.is<actors::CommitWeights>())
      commit(message.decode<actors::CommitWeights>()->version);
    if (message.is<actors::Cancel>()) {
      const auto cancel = *message.decode<actors::Cancel>();
      for (const ResponseId id : cancel.responses) {
        give_back(running_, id);
        give_back(waiting_, id);
        std::erase_if(running_, [&](const Response& r) { return r.id == id; });
        std::erase_if(waiting_, [&](const Response& r) { return r.id == id; });
      }
      if (running_.empty())
        pieces_.clear();
    }
  }

  /// The tokens sampled so far.
  template <class Responses>
  void give_back(const Responses& responses, ResponseId id) {
    for (const Response& r : responses) {
      if (r.id == id && r.done > r.prefix)
        finished.push_back({r.id, r.done - r.prefix, now_, r.segments});
    }
  }

  void generate(const actors::CountedGenerate& m) {
    for (const auto& item : m.items) {
      waiting_.push_back({item.response,
                          m.group.value(),
                          prompts_.of(m.group.value()).count(),
                          item.prefix.count(),
                          item.prefix.count(),
                          responses_.of(item.response.value()).count()});
    }
  }

  void commit(PolicyVersion version) {
    now_ += actors::swap_seconds(fabric_, s_);
    version_ = version;
    if (on_new_weights_ != OnNewWeights::Recompute)
      return;
    pieces_.clear();
    for (Response& r : waiting_)
      r.parked = false;
    std::map<std::uint64_t, bool> prompt_done;
    for (const Response& r : running_) {
      if (!std::exchange(prompt_done[r.group], true))
        pieces_.push_back({r.prompt, 0});
      if (r.done > 0)
        pieces_.push_back({r.done, r.prompt});
    }
  }

  /// Ensures space for one more token of each response.
  std::int64_t blocks_of(const std::vector<Response>& responses) const {
    const std::int64_t block = s_.config.rollout.block;
    std::map<std::uint64_t, std::int64_t> prompts;
    std::int64_t blocks = 0;
    for (const Response& r : responses) {
      prompts[r.group] = r.prompt / block;
      const std::int64_t own = r.prompt % block + r.done + 1 + s_.config.rollout.speculation.depth;
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
      with.back().began = r.began.value_or(version_);
      running_ = std::move(with);
      waiting_.pop_front();
    }
  }

  void step() {
    while (blocks_of(running_) > capacity_) {
      waiting_.push_front(running_.back());
      Response& r = waiting_.front();
      r.parked = r.done > 0 && cost_.copying_pays({r.done, r.prompt, true});
      parked += r.parked ? 1 : 0;
      running_.pop_back();
      ++preemptions;
    }
    most_blocks = std::max(most_blocks, blocks_of(running_));
    std::map<PolicyVersion, std::vector<const Response*>> passes;
    for (const Response& r : running_)
      passes[version_of(r)].push_back(&r);
    for (const auto& [version, responses] : passes)
      now_ += pass_seconds(responses);
    ++steps;
    for (Response& r : running_) {
      if (r.segments.empty() || r.segments.back().version != version_of(r))
        r.segments.push_back({version_of(r), Tokens(0)});
      r.segments.back().tokens += Tokens(1);
      if (++r.done == r.length)
        finished.push_back({r.id, r.done - r.prefix, now_, r.segments});
    }
    std::erase_if(running_, [](const Response& r) { return r.done == r.length; });
  }

  PolicyVersion version_of(const Response& r) const {
    return on_new_weights_ == OnNewWeights::Finish ? *r.began : version_;
  }

  double pass_seconds(const std::vector<const Response*>& responses) const {
    double context = 0;
    for (const Response* r : responses)
      context += static_cast<double>(r->prompt + r->done);
    const auto all = static_cast<double>(responses.size());
    const double batch = std::ceil(all / static_cast<double>(replicas_));
    const sim_hw::Drafts drafts = actors::engine_drafts(s_);
    const sim_hw::ReplicaShape shape{batch, batch, context / all, drafts.queries()};
    const double step = sim_hw::parallel_decode_seconds(device_, fabric_, model_, layout_, shape) +
                        sim_hw::draft_seconds(device_, fabric_, model_, layout_, drafts, shape);
    return step / sim_hw::accepted_tokens(s_.config.rollout.speculation.acceptance, drafts.depth);
  }

  actors::SimulationSettings s_;
  OnNewWeights on_new_weights_;
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
  PolicyVersion version_;
  std::deque<Response> waiting_;
  std::vector<Response> running_;
  std::deque<PrefillPiece> pieces_;
};

/// Adds responses that are parked in host memory to `parked`.
void expect_the_same(const actors::SimulationSettings& s,
                     const std::vector<Scheduled>& messages,
                     std::uint64_t seed,
                     std::int64_t& parked,
                     OnNewWeights on_new_weights = OnNewWeights::KeepKv) {
  World world(s, seed, on_new_weights);
  world.run(messages);
  const Time ready = world.sent().front().at;
  Naive naive(s, seed, on_new_weights);
  naive.run(messages, seconds(ready));

  std::vector<Finished> finished;
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
  const auto& drafts = s.config.rollout.speculation;
  const double tokens_per_step =
      sim_hw::accepted_tokens(drafts.acceptance, static_cast<double>(drafts.depth));
  EXPECT_EQ(counters.decode_steps, std::ceil(static_cast<double>(naive.steps) / tokens_per_step));
  EXPECT_EQ(counters.prefill_steps, naive.prefills);
  EXPECT_EQ(counters.preemptions, naive.preemptions);
  parked += naive.parked;
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
  // A prefix is shorter than its response.
  s.config.response.kind = actors::LengthKind::Histogram;
  s.config.response.weights = {0, 1, 1, 0, 1};
  s.config.response.width = Tokens(100);
  expect_the_same(s, arriving(messages, 0, 10, 6), 6, parked);
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

TEST(SimulatedRollout, FollowsTheNaiveSimulationThroughVersionsAndCancels) {
  std::int64_t parked = 0;
  auto s = small_engine();
  limit_cache(s, 3500);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(s, life(seed), seed, parked);
    expect_the_same(s, life(seed), seed, parked, OnNewWeights::Recompute);
    expect_the_same(s, life(seed), seed, parked, OnNewWeights::Finish);
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
  std::int64_t parked = 0;
  auto s = drafting_engine();
  limit_cache(s, 3500);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, parked);
    expect_the_same(s, life(seed), seed, parked);
    expect_the_same(s, life(seed), seed, parked, OnNewWeights::Finish);
  }
}

TEST(SimulatedRollout, FollowsTheNaiveSimulationWithAnAdapter) {
  std::int64_t parked = 0;
  auto s = drafting_engine();
  s.adapter =
      sim_hw::make_adapter(s.model, 8, std::vector<std::string>{"kv_b_proj", "o_proj", "up_proj"})
          .value();
  limit_cache(s, 3500);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(s, arriving(work(12, 8), 0, 20, seed), seed, parked);
    expect_the_same(s, life(seed), seed, parked, OnNewWeights::Finish);
  }
}

}  // namespace
}  // namespace temper::rollout
