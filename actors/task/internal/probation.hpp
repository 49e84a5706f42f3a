// Decides when to give up a verifier that has never given a reward.
#pragma once

#include "actors/task/verifier.hpp"

namespace temper::actors {

/// Gets every verdict of a verifier, in any order. The first reward ends the probation permanently.
class Probation {
 public:
  /// Returns true for the last tolerated failure; the count then restarts.
  bool fails(const Verdict& verdict) {
    passed_ = passed_ || verdict.failure.empty();
    if (passed_ || ++bad_replies_ < kMostBadReplies)
      return false;
    bad_replies_ = 0;
    return true;
  }

 private:
  bool passed_ = false;
  int bad_replies_ = 0;
};

}  // namespace temper::actors
