// The exact staleness rule (docs/explanation/semantics.md, section 1.2), and `sync`, which is the
// same with eta = 0.
//
// Rule.      A group dispatched under engine version v0 has the deadline d = v0 + eta. With t the
//            version being updated and B groups per update, over all outstanding groups
//            (generating, ready, or in training until the new version is published)
//                for every d >= t:  N(deadline <= d) <= (d - t + 1) * B           (I)
// Admission. A group may be dispatched if v0 + eta >= t and (I) still holds with it; groups in
//            training count at t.
// Selection. At step t take B ready groups, earliest deadline first, if (I) holds at t + 1 without
//            them; else wait, and only for the groups that break it. Earliest-deadline-first leaves
//            the fewest early deadlines behind, so if it fails, every choice fails.
// Guarantee. Every trained group has T - v0 <= eta; nothing is dropped for its age.
// Source.    Earliest-deadline feasibility, Liu and Layland 1973.
#pragma once

#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

namespace temper::orchestrator {

class ExactRule : public StalenessRule {
 public:
  bool admits(PolicyVersion engine,
              const DistQueue& queue,
              const OutstandingGroups& s) const override;
  bool may_train(const GroupsByVersion& ready, const OutstandingGroups& s) const override;
  /// A promised group counts at step t, like one in training: those for which (I) still holds.
  std::int64_t may_promise(const GroupsByVersion& ready, const OutstandingGroups& s) const override;
  /// The oldest versions of which (I) demands as many groups of that update as of all together.
  std::optional<Demand> demand(const OutstandingGroups& s) const override;
  std::optional<std::uint64_t> guarantee(const OutstandingGroups& s) const override {
    return eta(s);
  }

  /// When B of these groups may not be trained although there are B: the latest v0 of which groups
  /// must be in the batch; outstanding groups up to it that are not ready are the ones to wait for.
  std::optional<PolicyVersion> binding_version(const GroupsByVersion& ready,
                                               const OutstandingGroups& s) const;

 private:
  static std::uint64_t eta(const OutstandingGroups& s) {
    return static_cast<std::uint64_t>(s.bound);
  }
};

}  // namespace temper::orchestrator
