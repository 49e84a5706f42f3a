// Staleness rules: when a group may be dispatched, which groups a step takes, and which groups are
// given up for their age. The project's own rule is `exact` (exact.hpp). The others are the rules
// of other systems, as their sources define them, so that they can be compared on the same run.
//
// A rule is a pure function of the groups between dispatch and training (OutstandingGroups), which
// the scheduler keeps. A rule therefore has no state to store, and a decision can be repeated from
// a log. The age of a group at version t is t - v0. "Oldest first" orders by v0, then by group.
#pragma once

#include "orchestrator/scheduler/queue/dist_queue.hpp"
#include "orchestrator/scheduler/staleness/outstanding_groups.hpp"
#include "orchestrator/scheduler/staleness/rule_kind.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace temper::orchestrator {

class StalenessRule {
 public:
  virtual ~StalenessRule() = default;

  /// May a group be dispatched under this engine's version?
  virtual bool admits(PolicyVersion engine,
                      const DistQueue& queue,
                      const OutstandingGroups& s) const = 0;
  /// May the oldest B of these groups be the next step? Also asked about groups that are not
  /// trainable yet. By default true if there are B.
  virtual bool may_train(const GroupsByVersion& ready, const OutstandingGroups& s) const;
  /// The groups of the next step; nullopt: wait. By default the oldest B, if may_train().
  virtual std::optional<std::vector<GroupId>> select(const DistQueue& queue,
                                                     const OutstandingGroups& s) const;
  /// How many of these groups, oldest first, may be promised to the next step before the rest of
  /// its batch is known, so that the rule's guarantee still holds with all of them. By default 0.
  virtual std::int64_t may_promise(const GroupsByVersion& ready, const OutstandingGroups& s) const;
  /// What the next step (after the one in progress) requires: this many groups of this v0 and
  /// older.
  struct Demand {
    PolicyVersion newest;
    std::int64_t groups = 0;
    bool operator==(const Demand&) const = default;
  };
  /// By default nullopt: any B groups suffice.
  virtual std::optional<Demand> demand(const OutstandingGroups&) const { return std::nullopt; }
  /// Groups to give up for their age. By default none.
  virtual std::vector<GroupId> evict(const DistQueue& queue, const OutstandingGroups& s) const;
  /// The largest age that a trained group can have; nullopt: any.
  virtual std::optional<std::uint64_t> guarantee(const OutstandingGroups& s) const = 0;

 protected:
  static std::uint64_t age(PolicyVersion dispatched, const OutstandingGroups& s) {
    return s.step.value() - dispatched.value();
  }
  /// Trainable groups of a larger age than `most`, oldest first.
  static std::vector<GroupId> trainable_older_than(double most,
                                                   const DistQueue& queue,
                                                   const OutstandingGroups& s);
};

std::unique_ptr<StalenessRule> make_staleness_rule(StalenessRuleKind rule);

}  // namespace temper::orchestrator
