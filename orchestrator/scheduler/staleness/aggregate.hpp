// `aggregate`: one gate over all groups together.
//
// Rule.      Dispatch while accepted + running stays within (eta + v + 1) B, with v the version,
//            accepted all groups ever finished, running those that generate; train finished groups,
//            oldest first.
// Guarantee. None for a group: one that takes long is overtaken, update after update. The mean age
//            stays about eta.
// Source.    AReaL (2505.24298) section 4.1 and its staleness manager; fractional eta as there.
//            docs/explanation/semantics.md, section 1.3.
#pragma once

#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

class AggregateRule final : public StalenessRule {
 public:
  bool admits(PolicyVersion, const DistQueue&, const OutstandingGroups& s) const override {
    return static_cast<double>(s.dispatched + 1) <=
           (s.bound + static_cast<double>(s.step.value()) + 1) * s.batch;
  }
  std::optional<std::uint64_t> guarantee(const OutstandingGroups&) const override {
    return std::nullopt;
  }
};

}  // namespace temper::orchestrator
