// `drop`: finished groups that are too old are evicted, and as many dispatched anew.
//
// Rule.      Dispatch while fewer than (eta + 1) B groups are outstanding; evict a finished group
//            once t - v0 + 1 > eta; train finished groups, oldest first.
// Guarantee. T - v0 <= eta - 1, by throwing work away: the longest answers first.
// Source.    verl V1 and prime-rl; docs/explanation/semantics.md, section 1.3. With eta = 0 nothing
//            could ever be trained.
#pragma once

#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

class DropRule final : public StalenessRule {
 public:
  bool admits(PolicyVersion, const DistQueue&, const OutstandingGroups& s) const override {
    return s.outstanding_groups() < s.capacity();
  }
  std::vector<GroupId> evict(const DistQueue& queue, const OutstandingGroups& s) const override {
    return trainable_older_than(s.bound - 1, queue, s);
  }
  std::optional<std::uint64_t> guarantee(const OutstandingGroups& s) const override {
    return static_cast<std::uint64_t>(s.bound) - 1;
  }
};

}  // namespace temper::orchestrator
