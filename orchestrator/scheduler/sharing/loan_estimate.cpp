#include "orchestrator/scheduler/sharing/loan_estimate.hpp"

#include <algorithm>
#include <numeric>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kCosts = 3;
constexpr std::int32_t kInARow = 2;
constexpr double kRaise = 0.05, kLower = 0.03;

}  // namespace

void LoanEstimate::generated(std::int64_t responses, Time now) {
  if (!counted_from_) {  // the first ones began at an unknown time
    counted_from_ = now;
    return;
  }
  counted_ += responses;
  if (counted_ < window_)
    return;
  per_response_ = seconds(now - *counted_from_) / static_cast<double>(counted_);
  counted_ = 0;
  counted_from_ = now;
}

bool LoanEstimate::pays(std::int64_t remaining) const {
  if (remaining <= 0)
    return false;
  const auto cost = mean_cost();
  if (!cost)
    return true;
  if (!per_response_)
    return false;
  const double benefit = static_cast<double>(remaining) * *per_response_ * (1 - 1 / scaling_);
  return benefit > (1 + margin_) * *cost;
}

void LoanEstimate::returns(Time now) {
  const Duration transit = (arrived_ - left_) + (now - recalled_);
  costs_.push_back(seconds(transit));
  if (costs_.size() > kCosts)
    costs_.pop_front();
  const bool idle = recalled_ - arrived_ < transit;
  idle_ = idle ? idle_ + 1 : 0;
  calm_ = idle ? 0 : calm_ + 1;
  if (idle_ == kInARow) {
    margin_ = std::min(1.0, margin_ + kRaise);
    idle_ = 0;
  }
  if (calm_ == kInARow) {
    margin_ = std::max(0.0, margin_ - kLower);
    calm_ = 0;
  }
}

std::optional<double> LoanEstimate::mean_cost() const {
  if (costs_.empty())
    return std::nullopt;
  return std::accumulate(costs_.begin(), costs_.end(), 0.0) / static_cast<double>(costs_.size());
}

}  // namespace temper::orchestrator
