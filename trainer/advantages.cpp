#include "trainer/advantages.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace temper::trainer {
namespace {

struct Moments {
  double n = 0, sum = 0, squares = 0;

  double mean() const { return sum / n; }
  double deviation() const { return std::sqrt(squares / n); }
};

/// Moments of the shaped rewards of the batch.
class Rewards {
 public:
  Rewards(std::span<const TrainSample> batch, const Algorithm& algorithm) : algorithm_(algorithm) {
    for (const TrainSample& s : batch) {
      const Tokens length(static_cast<std::int64_t>(s.response.size()));
      values_.push_back(shaped_reward(s.reward, length, algorithm));
      of_group_.push_back(&groups_[s.group]);
      for (Moments* m : {of_group_.back(), &batch_}) {
        m->n += 1;
        m->sum += values_.back();
      }
    }
    const bool by_group = algorithm_.advantage_mean == AdvantageMean::Group ||
                          algorithm_.advantage_mean == AdvantageMean::LeaveOneOut;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      Moments& group = *of_group_[i];
      const double within = values_[i] - group.mean();
      group.squares += within * within;
      const double over = by_group ? within : values_[i] - batch_.mean();
      batch_.squares += over * over;
    }
  }

  std::size_t size() const { return values_.size(); }

  double above_baseline(std::size_t i) const {
    const Moments& group = *of_group_[i];
    switch (algorithm_.advantage_mean) {
      case AdvantageMean::None:
        return values_[i];
      case AdvantageMean::Group:
        return values_[i] - group.mean();
      case AdvantageMean::Batch:
        return values_[i] - batch_.mean();
      case AdvantageMean::LeaveOneOut:
        return group.n > 1 ? values_[i] - (group.sum - values_[i]) / (group.n - 1) : 0;
      case AdvantageMean::Critic:  // Not a function of rewards alone: gae.hpp.
        break;
    }
    return 0;
  }

  double scale(std::size_t i) const {
    switch (algorithm_.advantage_std) {
      case AdvantageStd::None:
        return 1;
      case AdvantageStd::Group:
        return of_group_[i]->deviation() + algorithm_.advantage_epsilon;
      case AdvantageStd::Batch:
        return batch_.deviation() + algorithm_.advantage_epsilon;
    }
    return 1;
  }

 private:
  const Algorithm& algorithm_;
  std::vector<double> values_;
  std::map<GroupId, Moments> groups_;
  std::vector<Moments*> of_group_;  ///< By sample; points into groups_.
  Moments batch_;
};

}  // namespace

double shaped_reward(double reward, Tokens response, const Algorithm& a) {
  if (a.overlong_buffer <= Tokens(0))
    return reward;
  const Tokens into = response - (a.longest_response - a.overlong_buffer);
  const double share =
      static_cast<double>(into.count()) / static_cast<double>(a.overlong_buffer.count());
  return reward - a.overlong_penalty * std::clamp(share, 0.0, 1.0);
}

std::vector<double> advantages(std::span<const TrainSample> batch, const Algorithm& algorithm) {
  const Rewards rewards(batch, algorithm);
  std::vector<double> out;
  out.reserve(batch.size());
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    const double above = rewards.above_baseline(i);
    out.push_back(above == 0 ? 0 : above / rewards.scale(i));
  }
  return out;
}

}  // namespace temper::trainer
