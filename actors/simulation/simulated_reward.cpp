#include "actors/simulation/simulated_reward.hpp"

#include "core/hash.hpp"
#include "core/portable_math.hpp"
#include "core/random.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace temper::actors {
namespace {

Random stream(std::uint64_t seed, std::uint64_t id, std::string_view name) {
  return Random(hash64(std::as_bytes(std::span(&id, 1)), seed), name);
}

}  // namespace

RewardModel::RewardModel(const RewardPoolConfig& config,
                         std::uint64_t seed,
                         std::uint64_t responses_per_group)
    : instant_(config.mean <= Duration(0)),
      seed_(seed),
      group_size_(std::max<std::uint64_t>(1, responses_per_group)) {
  if (instant_)
    return;
  sigma_ = std::log(config.p99_over_median) / kNormalQuantile99;
  mu_ = std::log(seconds(config.mean)) - sigma_ * sigma_ / 2;
}

double RewardModel::probability(std::uint64_t group) const {
  Random random = stream(seed_, group, "reward group");
  return (random.uniform() + random.uniform()) / 2;
}

RewardModel::Verdict RewardModel::judge(ResponseId response, double probability) const {
  Random random = stream(seed_, response.value(), "reward");
  Verdict verdict;
  verdict.reward = random.chance(probability) ? 1 : 0;
  if (!instant_)
    verdict.latency = from_seconds(std::exp(mu_ + sigma_ * random.normal()));
  return verdict;
}

SimulatedReward::SimulatedReward(const SimulationSettings& settings,
                                 std::uint64_t seed,
                                 std::uint64_t responses_per_group)
    : model_(settings.config.reward, seed, responses_per_group),
      pool_(static_cast<std::size_t>(std::max(1, settings.config.reward.pool))),
      spans_(settings.config.report_every) {}

Status SimulatedReward::start(Time, Outbox& out) {
  out.send(Ready{});
  return {};
}

Status SimulatedReward::on_message(const IncomingMessage& message, Time now, Outbox& out) {
  return dispatch(
             message,
             [&](const CountedJudge& work) { assign(work, now); },
             [&](const Stop&) {
               record(now);
               spans_.flush(now, out);
             })
      .value_or(Status());
}

Status SimulatedReward::advance(Time now, Outbox& out) {
  if (!leases_.empty() && leases_.top().done <= now)
    record(now);
  for (; !leases_.empty() && leases_.top().done <= now; leases_.pop())
    out.send(leases_.top().verdict);
  spans_.report(now, out);
  return {};
}

std::optional<Time> SimulatedReward::next_event() const {
  if (leases_.empty())
    return spans_.due();
  return earlier(leases_.top().done, spans_.due());
}

void SimulatedReward::assign(const CountedJudge& work, Time now) {
  if (busy_until_ <= now) {
    record(now);
    recorded_ = now;
  }
  Lease lease{now, ++sequence_, {.lease = work.lease, .items = {}}};
  lease.verdict.items.reserve(work.items.size());
  // Group of `probability`, cached because adjacent responses mostly share it.
  std::optional<std::uint64_t> group;
  double probability = 0;
  for (const auto& item : work.items) {
    if (const std::uint64_t own = model_.group_of(item.response); group != own) {
      group = own;
      probability = model_.probability(own);
    }
    const RewardModel::Verdict verdict = model_.judge(item.response, probability);
    Time begin = now;
    if (free_at_.size() == pool_) {
      begin = std::max(now, free_at_.top());
      free_at_.pop();
    }
    const Time end = begin + verdict.latency;
    free_at_.push(end);
    lease.done = std::max(lease.done, end);
    lease.verdict.items.push_back({verdict.reward, {}});
  }
  busy_until_ = std::max(busy_until_, lease.done);
  leases_.push(std::move(lease));
}

void SimulatedReward::record(Time now) {
  const Time end = std::min(now, busy_until_);
  if (end <= recorded_)
    return;
  spans_.add(CardState::Reward, recorded_, end);
  recorded_ = end;
}

}  // namespace temper::actors
