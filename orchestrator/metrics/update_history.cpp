#include "orchestrator/metrics/update_history.hpp"

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {

void Spread::add(double value) {
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  sum_ += value;
  squares_ += value * value;
  ++count_;
}

double Spread::deviation() const {
  if (count_ == 0)
    return 0;
  const double variance = squares_ / static_cast<double>(count_) - mean() * mean();
  return std::sqrt(std::max(0.0, variance));
}

void RewardHistory::add(double reward) {
  if (total_++ < kWindow)
    first_sum_ += reward;
  recent_.push_back(reward);
  if (recent_.size() > kWindow)
    recent_.pop_front();
  if (recent_.size() == kWindow)
    best_ = std::max(best_.value_or(last_mean()), last_mean());
  if (points_.empty() || points_.back().count == stride_)
    points_.emplace_back();
  points_.back().sum += reward;
  ++points_.back().count;
  if (points_.size() < kPoints || points_.back().count < stride_)
    return;
  for (std::size_t i = 0; i < kPoints / 2; ++i) {
    points_[i] = {points_[2 * i].sum + points_[2 * i + 1].sum,
                  points_[2 * i].count + points_[2 * i + 1].count};
  }
  points_.resize(kPoints / 2);
  stride_ *= 2;
}

double RewardHistory::last_mean() const {
  double sum = 0;
  for (const double reward : recent_)
    sum += reward;
  return sum / static_cast<double>(recent_.size());
}

std::optional<double> RewardHistory::first() const {
  if (total_ == 0)
    return std::nullopt;
  return first_sum_ / static_cast<double>(std::min<std::uint64_t>(total_, kWindow));
}

std::optional<double> RewardHistory::last() const {
  if (total_ == 0)
    return std::nullopt;
  return last_mean();
}

std::optional<double> RewardHistory::best() const {
  return total_ < kWindow ? last() : best_;
}

std::vector<double> RewardHistory::curve() const {
  std::vector<double> means;
  means.reserve(points_.size());
  for (const Point& p : points_)
    means.push_back(p.sum / static_cast<double>(p.count));
  return means;
}

void UpdateHistory::add(const Update& update) {
  kept_.push_back(update);
  rewards_.add(update.metrics.reward_mean);
  if (keep_ == Keep::All || kept_.size() < 2 * kKept)
    return;
  kept_.erase(kept_.begin(), kept_.begin() + kKept);
  first_ += kKept;
}

void UpdateHistory::go_back(const Mark& mark) {
  if (mark.count < first_) {
    first_ = mark.count;
    kept_.clear();
  }
  kept_.resize(std::min<std::size_t>(kept_.size(), mark.count - first_));
  rewards_ = mark.rewards;
}

}  // namespace temper::orchestrator
