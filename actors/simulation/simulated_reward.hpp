// The reward actor on simulated hardware: `pool` workers judge one response each, in order of
// arrival; a lease is answered when its last response is judged.
//
// Latency of a response: lognormal with the configured mean and ratio of 99th percentile to median
// (sigma = ln(ratio) / 2.3263, mu = ln(mean) - sigma^2 / 2). Reward: 1 with the probability p of
// its group, otherwise 0; p is the mean of two uniform numbers, so some groups are easy, some hard,
// and most in between. Both depend only on the seed and the response id. The workers run on the
// host and use no device memory.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "actors/simulation/span_log.hpp"

#include <queue>

namespace temper::actors {

/// Latency and reward of judging a response.
class RewardModel {
 public:
  /// `responses_per_group`: responses of one group share their group's probability.
  RewardModel(const RewardPoolConfig& config,
              std::uint64_t seed,
              std::uint64_t responses_per_group);
  struct Verdict {
    Duration latency{};
    double reward = 0;
  };
  std::uint64_t group_of(ResponseId response) const { return response.value() / group_size_; }
  /// The probability of a reward in the group with this number.
  double probability(std::uint64_t group) const;
  /// Requires: `probability` is that of the response's group.
  Verdict judge(ResponseId response, double probability) const;

  Duration latency(ResponseId response) const { return judge(response, 0).latency; }
  double reward(ResponseId response) const {
    return judge(response, probability(group_of(response))).reward;
  }

 private:
  double mu_ = 0;
  double sigma_ = 0;
  bool instant_ = false;
  std::uint64_t seed_;
  std::uint64_t group_size_;
};

class SimulatedReward final : public SimulatedActor {
 public:
  SimulatedReward(const SimulationSettings& settings,
                  std::uint64_t seed,
                  std::uint64_t responses_per_group);

  Status start(Time now, Outbox& out) override;
  Status on_message(const IncomingMessage& message, Time now, Outbox& out) override;
  Status advance(Time now, Outbox& out) override;
  std::optional<Time> next_event() const override;

 private:
  struct Lease {
    Time done;
    std::uint64_t sequence;
    Judged verdict;
    /// Orders a queue by time, then by sequence, earliest on top.
    bool operator<(const Lease& other) const {
      return std::tie(other.done, other.sequence) < std::tie(done, sequence);
    }
  };

  /// Assigns its responses to the workers that become free first.
  void assign(const CountedJudge& work, Time now);
  /// Adds the busy time of the pool until `now`: from the first response after a pause to the last
  /// end, at least one worker is always busy.
  void record(Time now);

  const RewardModel model_;
  /// When each worker that has had work becomes free; the others are free.
  std::priority_queue<Time, std::vector<Time>, std::greater<>> free_at_;
  const std::size_t pool_;
  std::priority_queue<Lease> leases_;
  std::uint64_t sequence_ = 0;
  Time recorded_{};  ///< Busy time before this is in `spans_`.
  Time busy_until_{};
  SpanLog spans_;
};

}  // namespace temper::actors
