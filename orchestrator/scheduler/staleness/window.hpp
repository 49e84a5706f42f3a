// `window`: only groups of the last eta + 1 versions count.
//
// Rule.      Dispatch while fewer than (eta + 1) B groups are outstanding; train finished groups
//            with v0 in [v - eta, v], oldest first; abort older ones, also while they generate.
// Guarantee. T - v0 <= eta, by throwing work away: the longest answers first.
// Source.    NeMo RL (max_trajectory_age_steps) and ROLL (async_generation_ratio);
//            docs/explanation/semantics.md, section 1.3.
#pragma once

#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

class WindowRule final : public StalenessRule {
 public:
  bool admits(PolicyVersion, const DistQueue&, const OutstandingGroups& s) const override {
    return s.outstanding_groups() < s.capacity();
  }
  std::vector<GroupId> evict(const DistQueue& queue, const OutstandingGroups& s) const override {
    std::vector<GroupId> out;
    const auto too_old = [&](PolicyVersion v0) {
      return static_cast<double>(age(v0, s)) > s.bound;
    };
    if (s.outstanding.empty() || !too_old(s.outstanding.begin()->first))
      return out;
    for (const auto& [id, group] : queue.groups()) {
      if (too_old(group.dispatched) && !queue.in_training(id))
        out.push_back(id);
    }
    return out;
  }
  std::optional<std::uint64_t> guarantee(const OutstandingGroups& s) const override {
    return static_cast<std::uint64_t>(s.bound);
  }
};

}  // namespace temper::orchestrator
