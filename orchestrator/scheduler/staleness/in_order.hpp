// `in_order`: groups are trained strictly in the order of their dispatch.
//
// Rule.      Dispatch under version v while fewer than (v + eta + 1) B groups were dispatched; an
//            update takes the B that were dispatched first, and waits until all are ready.
// Guarantee. T - v0 <= eta: the k-th group is trained at step k / B. The price is waiting for the
//            slowest of every batch.
// Source.    NeMo RL, asynchronous GRPO in order (docs/explanation/semantics.md, section 1.3).
#pragma once

#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

class InOrderRule final : public StalenessRule {
 public:
  bool admits(PolicyVersion engine, const DistQueue&, const OutstandingGroups& s) const override {
    return static_cast<double>(s.dispatched + 1) <=
           (s.bound + static_cast<double>(engine.value()) + 1) * s.batch;
  }
  /// Of groups by version alone: all of the oldest versions are there.
  bool may_train(const GroupsByVersion& ready, const OutstandingGroups& s) const override {
    std::int64_t there = 0;
    for (const auto& [v0, groups] : s.outstanding) {
      if (there >= s.batch)
        return true;
      const auto it = ready.find(v0);
      if (it == ready.end() || it->second < groups)
        return false;
      there += groups;
    }
    return there >= s.batch;
  }
  std::optional<std::vector<GroupId>> select(const DistQueue& queue,
                                             const OutstandingGroups& s) const override {
    std::vector<GroupId> out;
    for (const auto& [id, group] : queue.groups()) {
      if (!group.trainable)
        return std::nullopt;
      out.push_back(id);
      if (out.size() == static_cast<std::size_t>(s.batch))
        return out;
    }
    return std::nullopt;
  }
  /// The first B, by version.
  std::optional<Demand> demand(const OutstandingGroups& s) const override {
    std::int64_t there = 0;
    for (const auto& [v0, groups] : s.outstanding) {
      there += s.waiting(v0);
      if (there >= s.batch)
        return Demand{v0, there};
    }
    return std::nullopt;
  }
  std::optional<std::uint64_t> guarantee(const OutstandingGroups& s) const override {
    return static_cast<std::uint64_t>(s.bound);
  }
};

}  // namespace temper::orchestrator
