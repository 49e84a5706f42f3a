// The results of simulated work in a twin: simulated actors determine how long work takes and how
// long responses are; a content source does the same work on a real, small policy and supplies
// rewards and metrics. The driver of virtual time joins the two.
//
// Calls come in the order of the scheduler's commands, which is the same for equal runs. A source
// whose answers depend on nothing else therefore leaves logs equal. It may do work at any time
// until the result is requested; the request waits for it. An error ends the run.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"
#include "orchestrator/scheduler/problems/problem_plan.hpp"

#include <optional>
#include <span>
#include <vector>

namespace temper::orchestrator {

/// One dispatch of new responses.
struct Sampling {
  LeaseId lease;
  GroupId group;
  PolicyVersion version;  ///< Of the engine's weights, which is published.
  std::vector<ResponseId> responses;
  std::optional<Draw> draw{};  ///< Of a new group.
};

class ContentSource {
 public:
  virtual ~ContentSource() = default;

  /// Samples these responses; one that was sampled before starts over.
  virtual Status sample(const Sampling& work) = 0;
  /// Scores them under the reference weights, for train().
  virtual Status score(LeaseId lease, std::span<const ResponseId> responses) = 0;
  virtual Status judge(LeaseId lease, std::span<const ResponseId> responses) = 0;
  /// The result of judge() for that lease, in its order. To be called once.
  virtual Result<actors::Judged> judged(LeaseId lease) = 0;
  virtual Status train(LeaseId lease,
                       const actors::Certificate& certificate,
                       std::span<const ResponseId> responses) = 0;
  /// The metrics of train() for that lease. To be called once. The new version is published from
  /// here on.
  virtual Result<actors::UpdateMetrics> trained(LeaseId lease) = 0;
  /// The group is no longer needed.
  virtual void release(GroupId group) = 0;
  /// Called regularly, for sources with workers of their own.
  virtual Status serve() = 0;
};

}  // namespace temper::orchestrator
