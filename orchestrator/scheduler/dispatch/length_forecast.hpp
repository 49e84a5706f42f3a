// How long the responses of a group are expected to get, from those of them that have ended.
//
// Equation. (sum of the lengths of n ended siblings + mean) / (n + 1), with `mean` that of all
//           responses that have ended: one response's worth of doubt.
// Assumed.  Prompts differ in how long their answers are. Where they do not, it says nothing.
#pragma once

#include "orchestrator/scheduler/queue/dist_queue.hpp"

namespace temper::orchestrator {

class LengthForecast {
 public:
  /// A response has ended at this length.
  void ended(Tokens length) {
    total_ += static_cast<double>(length.count());
    ++responses_;
  }
  /// Expected length, in tokens, of a response of this group that has not ended; 0 if none has.
  double of(const Group& group) const {
    if (responses_ == 0)
      return 0;
    double sum = total_ / static_cast<double>(responses_);
    double n = 1;
    for (const Row& row : group.rows) {
      if (!generated(row))
        continue;
      sum += static_cast<double>(row.tokens.count());
      n += 1;
    }
    return sum / n;
  }

 private:
  static bool generated(const Row& row) {
    return (row.consumed >> static_cast<unsigned>(Task::Generate) & 1U) != 0 && !row.failed;
  }

  double total_ = 0;
  std::uint64_t responses_ = 0;
};

}  // namespace temper::orchestrator
