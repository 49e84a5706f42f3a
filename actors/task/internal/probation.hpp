// When a verifier that has never given a reward is given up.
#pragma once

#include "actors/task/verifier.hpp"

namespace temper::actors {

/// Fed every verdict of a verifier, in any order. Its first reward ends the probation for good.
class Probation {
 public:
  /// Whether this is the bad reply that is one too many; the count then begins anew.
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
