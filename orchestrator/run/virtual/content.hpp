// What simulated work is about, in a run where that is real (a twin): simulated actors say how long
// work takes and how long its answers get; a content source does the same work on a real, small
// policy and says what came of it. The driver of virtual time joins the two.
//
// Calls come in the order of the scheduler's commands, which is the same for equal runs, so a
// source whose answers depend on nothing else leaves logs equal. Work that is asked for may be done
// at any time until its result is asked for; asking waits. An error ends the run.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"

#include <span>

namespace temper::orchestrator {

/// One dispatch of responses that begin here.
struct Sampling {
  LeaseId lease;
  GroupId group;
  PolicyVersion version;  ///< Of the engine's weights, published before.
  std::vector<ResponseId> responses;
};

class ContentSource {
 public:
  virtual ~ContentSource() = default;

  /// Sample these responses. One that was sampled before begins anew.
  virtual Status sample(const Sampling& work) = 0;
  /// Score them under the reference weights; what becomes of it is for train().
  virtual Status score(LeaseId lease, std::span<const ResponseId> responses) = 0;
  virtual Status judge(LeaseId lease, std::span<const ResponseId> responses) = 0;
  /// What judge() of that lease found, in its order; once.
  virtual Result<actors::Judged> judged(LeaseId lease) = 0;
  virtual Status train(LeaseId lease,
                       const actors::Certificate& certificate,
                       std::span<const ResponseId> responses) = 0;
  /// What train() of that lease did; once. Its result is published from here on.
  virtual Result<actors::UpdateMetrics> trained(LeaseId lease) = 0;
  /// The group is not spoken of again.
  virtual void release(GroupId group) = 0;
  /// Called now and then, so that a source that lives elsewhere can be heard.
  virtual Status serve() = 0;
};

}  // namespace temper::orchestrator
