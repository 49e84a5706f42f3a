#include "trainer/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace temper::trainer {

double share_at(const LearningRateSchedule& schedule,
                std::uint64_t updates,
                std::int64_t untrained) {
  const auto warm_up = static_cast<double>(schedule.warm_up_steps);
  const auto begin = static_cast<double>(untrained);
  const auto done = std::max(static_cast<double>(updates), begin);
  if (done < begin + warm_up)
    return (done - begin + 1) / warm_up;
  if (schedule.decay == Decay::None)
    return 1;
  const double warm = begin + warm_up;
  const double steps = static_cast<double>(schedule.decay_steps.value()) - warm;
  const double passed = steps > 0 ? std::min(1.0, (done - warm) / steps) : 1;
  const double left =
      schedule.decay == Decay::Linear ? 1 - passed : (1 + std::cos(std::numbers::pi * passed)) / 2;
  return schedule.end + (1 - schedule.end) * left;
}

}  // namespace temper::trainer
