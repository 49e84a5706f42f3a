// A driver for one simulated rollout engine: sends messages at set times, and records everything it
// sends with its time.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/protocol/lifecycle.hpp"
#include "actors/protocol/weights.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/transport/message.hpp"
#include "core/random.hpp"
#include "rollout/simulated/rollout_actor.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace temper::rollout {

/// Two cards of a CM384 (4 devices, 2 replicas) with a small mixture of experts.
inline actors::SimulationSettings small_engine() {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  actors::SimulationSettings s;
  s.cluster = **catalog.hardware("cm384");
  s.model = **catalog.model("qwen3-30b-a3b");
  s.config.rollout.tp = 2;
  s.config.rollout.ep = 4;
  s.config.rollout.block = 16;
  s.config.rollout.prefill_tokens = 512;
  s.config.report_every = Duration(0);
  s.config.prompt.mean = 200;
  s.config.prompt.cap = Tokens(700);
  s.config.response.mean = 300;
  s.config.response.cap = Tokens(1500);
  s.config.trainer.ep = 4;
  s.cards = 2;
  s.trainer_cards = 2;
  s.rollout_cards = 4;
  s.concurrency = 24;
  return s;
}

/// That engine with two more cards, which only prefill.
inline actors::SimulationSettings disaggregated_engine() {
  auto s = small_engine();
  s.cards = 4;
  s.rollout_cards = 8;
  s.config.rollout.prefill_cards = 2;
  return s;
}

/// The KV share with which a replica holds about `tokens`.
inline void limit_cache(actors::SimulationSettings& s, std::int64_t tokens) {
  s.config.rollout.kv_share = 1;
  s.config.rollout.kv_share =
      (static_cast<double>(tokens) + 0.5) / static_cast<double>(actors::kv_tokens(s).count());
}

struct Scheduled {
  Time at{};
  actors::OutgoingMessage message;
};
template <class M>
Scheduled at(Time time, const M& message) {
  return {time, actors::outgoing(message)};
}
inline Time time_of(double s) {
  return Time(from_seconds(s));
}

struct Sent {
  Time at{};
  actors::OutgoingMessage message;
  bool operator==(const Sent& o) const {
    return at == o.at && message.tag == o.message.tag && message.body == o.message.body;
  }
  template <class M>
  bool is() const {
    return message.tag == M::kTag;
  }
  template <class M>
  M as() const {
    return *actors::IncomingMessage::from(message).decode<M>();
  }
};

class World {
 public:
  explicit World(
      const actors::SimulationSettings& settings,
      std::uint64_t seed = 1,
      OnNewWeights on_new_weights = OnNewWeights::KeepKv,
      std::shared_ptr<actors::Publications> publications = std::make_shared<actors::Publications>())
      : actor_(settings, seed, PolicyVersion(0), on_new_weights, std::move(publications)),
        out_([this](actors::OutgoingMessage m) {
          sent_.push_back({now_, std::move(m)});
        }) {
    const Status started = actor_.start(now_, out_);
    EXPECT_TRUE(started) << started.error().context;
  }
  World(const World&) = delete;

  /// Delivers messages of equal time in order. Between events, time is divided `cuts` times at
  /// random.
  void run(const std::vector<Scheduled>& messages, int cuts = 0) {
    Random random(99, "cuts");
    std::size_t next = 0;
    while (true) {
      const auto event = actor_.next_event();
      if (next == messages.size() && !event)
        return;
      const bool message =
          next < messages.size() && (!event || std::max(messages[next].at, now_) <= *event);
      const Time to = message ? std::max(messages[next].at, now_) : std::max(*event, now_);
      for (int i = 0; i < cuts; ++i) {
        const auto left = static_cast<std::uint64_t>((to - now_).count());
        if (left > 1)
          advance(now_ + Duration(static_cast<std::int64_t>(random.below(left))));
      }
      now_ = to;
      for (; next < messages.size() && messages[next].at <= now_ && message; ++next) {
        const Status status =
            actor_.on_message(actors::IncomingMessage::from(messages[next].message), now_, out_);
        ASSERT_TRUE(status) << status.error().context;
      }
      advance(now_);
    }
  }
  void advance(Time to) {
    now_ = to;
    const Status status = actor_.advance(now_, out_);
    EXPECT_TRUE(status);
  }

  const std::vector<Sent>& sent() const { return sent_; }
  template <class M>
  std::vector<M> all() const {
    std::vector<M> out;
    for (const Sent& s : sent_) {
      if (s.is<M>())
        out.push_back(s.as<M>());
    }
    return out;
  }
  std::vector<Batch::FinishedResponse> ended() const {
    std::vector<Batch::FinishedResponse> out;
    for (const auto& report : all<actors::CountedGenerated>())
      out.insert(out.end(), report.items.begin(), report.items.end());
    return out;
  }
  SimulatedRollout& actor() { return actor_; }
  Time now() const { return now_; }

 private:
  SimulatedRollout actor_;
  Time now_{};
  std::vector<Sent> sent_;
  actors::Outbox out_;
};

/// In the spans that it has reported.
inline Duration time_in(const World& world, actors::CardState state) {
  Duration sum{};
  for (const auto& activity : world.all<actors::Activity>()) {
    for (const actors::Span& span : activity.spans)
      sum += span.state == state ? span.end - span.begin : Duration{};
  }
  return sum;
}

/// `groups` groups of `size` new responses, ids from `first_group` on, one lease each.
inline std::vector<actors::CountedGenerate> work(std::uint64_t groups,
                                                 std::uint64_t size,
                                                 std::uint64_t first_group = 0) {
  std::vector<actors::CountedGenerate> out;
  for (std::uint64_t g = first_group; g < first_group + groups; ++g) {
    actors::CountedGenerate message;
    message.lease = LeaseId(g + 1);
    message.group = GroupId(g);
    for (std::uint64_t i = 0; i < size; ++i)
      message.items.push_back({ResponseId(g * size + i), Tokens(0)});
    out.push_back(message);
  }
  return out;
}

/// That work, at random times in [from, from + within), earliest first.
inline std::vector<Scheduled> arriving(const std::vector<actors::CountedGenerate>& messages,
                                       double from,
                                       double within,
                                       std::uint64_t seed) {
  Random random(seed, "arrivals");
  std::vector<Scheduled> out;
  for (const auto& message : messages)
    out.push_back(at(time_of(from + within * random.uniform()), message));
  std::stable_sort(
      out.begin(), out.end(), [](const Scheduled& a, const Scheduled& b) { return a.at < b.at; });
  return out;
}

/// Length of response r in a run with this seed.
inline std::int64_t length_of(const actors::SimulationSettings& s,
                              ResponseId r,
                              std::uint64_t seed = 1) {
  return actors::Lengths(s.config.response, seed, actors::kResponseLengths).of(r.value()).count();
}

/// The message to stage this version.
inline actors::StageWeights stage(std::uint64_t version) {
  actors::StageWeights m;
  m.weights.version = PolicyVersion(version);
  return m;
}

/// The same messages at the same times, whenever it is asked in between, at any rate of reports.
inline void expect_the_same_whenever_asked(actors::SimulationSettings s) {
  for (const auto every : {0, 300, 5000}) {
    s.config.report_every = std::chrono::milliseconds(every);
    World once(s);
    once.run(arriving(work(20, 8), 0, 8, 1));
    World cut(s);
    cut.run(arriving(work(20, 8), 0, 8, 1), 5);
    EXPECT_EQ(once.sent(), cut.sent());
    EXPECT_EQ(once.ended().size(), 160U);
  }
}

}  // namespace temper::rollout
