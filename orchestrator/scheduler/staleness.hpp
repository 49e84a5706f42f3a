// The exact staleness rule (SEMANTICS 1.1).
//
// Rule.      A group dispatched under engine version v0 has the deadline d = v0 + eta. With t the
//            version being updated and B groups per update, over all outstanding groups
//            (generating, ready, or in training until the new version is published)
//                for every d >= t:  N(deadline <= d) <= (d - t + 1) * B           (I)
// Admission. A group may be dispatched if v0 + eta >= t and (I) still holds with it.
// Selection. At step t take B ready groups, earliest deadline first, if (I) holds at t + 1 without
//            them; else wait, and only for the groups that break it. Earliest-deadline-first leaves
//            the fewest early deadlines behind, so if it fails, every choice fails.
// Guarantee. Every trained group has T - v0 <= eta; nothing is dropped for its age.
// Source.    Earliest-deadline feasibility, Liu and Layland 1973; SEMANTICS 1.1.
#pragma once

#include "core/describe.hpp"

#include <map>
#include <optional>
#include <span>
#include <vector>

namespace temper::orchestrator {

class ExactRule {
 public:
  ExactRule() = default;
  ExactRule(std::uint64_t bound, std::int32_t groups_per_update)
      : bound_(bound), batch_(groups_per_update) {}

  std::uint64_t bound() const { return bound_; }
  PolicyVersion deadline_of(PolicyVersion dispatched) const {
    return PolicyVersion(dispatched.value() + bound_);
  }

  /// May a group be dispatched under `engine` while version `step` is being updated?
  bool admits(PolicyVersion engine, PolicyVersion step) const;
  /// Can the groups with these deadlines leave at `step` so that (I) holds at step + 1?
  /// Requires: `deadlines` are among the outstanding ones.
  bool may_train(std::span<const PolicyVersion> deadlines, PolicyVersion step) const;
  /// The same for so many groups per deadline.
  bool may_train(const std::map<PolicyVersion, std::int64_t>& leaving, PolicyVersion step) const {
    return !binding_deadline(leaving, step).has_value();
  }
  /// When may_train() is false: the latest deadline whose groups must be in the batch; outstanding
  /// groups up to it that are not ready are the ones to wait for.
  std::optional<PolicyVersion> binding_deadline(std::span<const PolicyVersion> deadlines,
                                                PolicyVersion step) const;
  std::optional<PolicyVersion> binding_deadline(
      const std::map<PolicyVersion, std::int64_t>& leaving, PolicyVersion step) const;

  void add(PolicyVersion deadline) { ++outstanding_[deadline]; }
  void remove(PolicyVersion deadline);
  /// These outstanding groups are in training from now on / are not (to be removed, or void).
  void begin_update(std::vector<PolicyVersion> deadlines);
  void end_update() { in_training_.clear(); }

  /// Stored without the update under way, which a resume makes void.
  template <class V>
  friend void describe(V& v, ExactRule& r) {
    v.field(1, "bound", r.bound_);
    v.field(2, "batch", r.batch_);
    v.field(3, "outstanding", r.outstanding_);
  }

 private:
  std::uint64_t bound_ = 0;
  std::int32_t batch_ = 1;
  std::map<PolicyVersion, std::int64_t> outstanding_;  ///< Groups per deadline.
  std::vector<PolicyVersion> in_training_;             ///< Their deadlines, ascending.
};

}  // namespace temper::orchestrator
