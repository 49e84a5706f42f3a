// `count`: so many groups per interval between two publications.
//
// Rule.      Dispatch while those outstanding at the last publication and those dispatched since
//            are fewer than (eta + 1) B; train finished groups, oldest first. A full queue drops
//            its oldest there; one of (eta + 1) B, as here, never fills.
// Guarantee. None for a group.
// Source.    verl, fully asynchronous recipe: staleness_threshold, max_queue_size; fractional eta
//            as there (docs/explanation/semantics.md, section 1.3). Its queue knows groups by when
//            they finished, ours by dispatch.
#pragma once

#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

class CountRule final : public StalenessRule {
 public:
  bool admits(PolicyVersion, const DistQueue&, const OutstandingGroups& s) const override {
    return s.at_step + s.since_step < s.capacity();
  }
  std::optional<std::uint64_t> guarantee(const OutstandingGroups&) const override {
    return std::nullopt;
  }
};

}  // namespace temper::orchestrator
