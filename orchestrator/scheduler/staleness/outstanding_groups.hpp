// Counts of the groups between dispatch and training, from which staleness rules decide.
#pragma once

#include "core/ids.hpp"

#include <cstdint>
#include <map>

namespace temper::orchestrator {

using GroupsByVersion = std::map<PolicyVersion, std::int64_t>;

/// Every group that was dispatched and has not left, and counts that rules use.
struct OutstandingGroups {
  std::int32_t batch = 1;        ///< B, groups per step.
  double bound = 0;              ///< eta; an integer unless the rule allows a fraction.
  PolicyVersion step;            ///< The version that is trained = the published one.
  GroupsByVersion outstanding;   ///< By v0 (or what an age counts from); those in training too,
                                 ///< until the step ends.
  std::uint64_t dispatched = 0;  ///< Groups ever, without those that failed or were given up.
  std::uint64_t since_step = 0;  ///< Of them, since `step` was published.
  std::uint64_t at_step = 0;     ///< Outstanding when `step` was published.
  GroupsByVersion in_training;   ///< Part of `outstanding`: in the current step, or promised
                                 ///< to the next one (prepared). Not stored.
  std::int32_t prepared = 0;     ///< Groups that are promised. Not stored.
  bool updating = false;         ///< A step is in progress. Not stored.

  std::uint64_t outstanding_groups() const;
  /// Outstanding groups of a version that are not in the current step.
  std::int64_t waiting(PolicyVersion version) const;
  /// (bound + 1) B groups, rounded down: the most that may be ahead of the trainer under any rule.
  std::uint64_t capacity() const;
  /// Groups that the next step still needs.
  std::int32_t wanted() const { return batch - prepared; }

  // --- What happens; v0: the version a group was dispatched under
  void add(PolicyVersion v0);
  enum class Left { Trained, GivenUp };
  void remove(PolicyVersion v0, Left how);
  void publish(PolicyVersion version);
  /// Counts the age of one group from another version.
  void recount(PolicyVersion from, PolicyVersion to);
};
void describe(auto& v, OutstandingGroups& s) {
  v.field(1, "batch", s.batch);
  v.field(2, "bound", s.bound);
  v.field(3, "step", s.step);
  v.field(4, "outstanding", s.outstanding);
  v.field(5, "dispatched", s.dispatched);
  v.field(6, "since_step", s.since_step);
  v.field(7, "at_step", s.at_step);
}

}  // namespace temper::orchestrator
