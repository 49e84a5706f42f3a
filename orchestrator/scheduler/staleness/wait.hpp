// `wait`: no new work while any group that generates is as old as allowed.
//
// Rule.      Dispatch while fewer than (eta + 1) B groups are outstanding and none of those that
//            are still generated or judged has the age eta; train finished groups, oldest first.
// Guarantee. None for a group: the trainer goes on with younger ones.
// Source.    verl V1 (docs/explanation/semantics.md, section 1.3).
#pragma once

#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

class WaitRule final : public StalenessRule {
 public:
  bool admits(PolicyVersion, const DistQueue& queue, const OutstandingGroups& s) const override {
    if (s.outstanding_groups() >= s.capacity())
      return false;
    const auto of = [](const GroupsByVersion& groups, PolicyVersion v0) {
      const auto it = groups.find(v0);
      return it == groups.end() ? 0 : it->second;
    };
    for (const auto& [v0, groups] : s.outstanding) {
      if (static_cast<double>(age(v0, s)) < s.bound)
        return true;
      if (groups > of(queue.judged_by_version(), v0) + of(s.in_training, v0))
        return false;
    }
    return true;
  }
  std::optional<std::uint64_t> guarantee(const OutstandingGroups&) const override {
    return std::nullopt;
  }
};

}  // namespace temper::orchestrator
