// Staleness policies: when a group may be dispatched, which groups an update takes, which are given
// up for their age. The project's own is `exact` (exact.hpp); the others are rules of other
// systems, as their sources define them, to be compared with it on the same run.
//
// A policy is a pure function of what stands between dispatch and training (OutstandingGroups),
// which the scheduler keeps: so policies have no state to store, and a decision can be made again
// from a log. Age of a group at version t: t - v0. Oldest first: by v0, then by group.
#pragma once

#include "orchestrator/scheduler/queue/config.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace temper::orchestrator {

using GroupsByVersion = std::map<PolicyVersion, std::int64_t>;

/// Every group that was dispatched and has not left, and counts that rules are made of.
struct OutstandingGroups {
  std::int32_t batch = 1;        ///< B, groups of an update.
  double bound = 0;              ///< eta; whole but for rules that allow a fraction.
  PolicyVersion step;            ///< The version being updated = the published one.
  GroupsByVersion outstanding;   ///< By v0 (or what an age counts from); those in training too,
                                 ///< until the update is done.
  std::uint64_t dispatched = 0;  ///< Groups ever, without those that failed or were given up.
  std::uint64_t since_step = 0;  ///< Of them, since `step` was published.
  std::uint64_t at_step = 0;     ///< Outstanding when `step` was published.
  GroupsByVersion in_training;   ///< Part of `outstanding`. Not stored.

  std::uint64_t outstanding_groups() const;
  /// Outstanding groups of a version that no update under way holds.
  std::int64_t waiting(PolicyVersion version) const;
  /// (bound + 1) B groups, rounded down: what may be ahead of the trainer. No policy has more
  /// outstanding.
  std::uint64_t capacity() const;

  // --- What happens; v0: the version a group was dispatched under
  void add(PolicyVersion v0);
  enum class Left { Trained, GivenUp };
  void remove(PolicyVersion v0, Left how);
  void publish(PolicyVersion version);
  /// The age of one group counts from another version.
  void recount(PolicyVersion from, PolicyVersion to);
};
template <class V>
void describe(V& v, OutstandingGroups& s) {
  v.field(1, "batch", s.batch);
  v.field(2, "bound", s.bound);
  v.field(3, "step", s.step);
  v.field(4, "outstanding", s.outstanding);
  v.field(5, "dispatched", s.dispatched);
  v.field(6, "since_step", s.since_step);
  v.field(7, "at_step", s.at_step);
}

class StalenessPolicy {
 public:
  virtual ~StalenessPolicy() = default;

  /// May a group be dispatched under this engine's version?
  virtual bool admits(PolicyVersion engine,
                      const DistQueue& queue,
                      const OutstandingGroups& s) const = 0;
  /// May the oldest B of these groups be the next update? Also asked of groups that are not
  /// trainable yet. By default whenever there are B.
  virtual bool may_train(const GroupsByVersion& ready, const OutstandingGroups& s) const;
  /// The groups of the next update; none: wait. By default the oldest B, if may_train().
  virtual std::optional<std::vector<GroupId>> select(const DistQueue& queue,
                                                     const OutstandingGroups& s) const;
  /// What the next update (the one after that under way) cannot do without: so many of the groups
  /// of this v0 and older.
  struct Demand {
    PolicyVersion newest;
    std::int64_t groups = 0;
    bool operator==(const Demand&) const = default;
  };
  /// By default none: any B groups will do.
  virtual std::optional<Demand> demand(const OutstandingGroups&) const { return std::nullopt; }
  /// Groups to give up for their age. By default none.
  virtual std::vector<GroupId> evict(const DistQueue& queue, const OutstandingGroups& s) const;
  /// The largest age that a trained group can have; none: any.
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

std::unique_ptr<StalenessPolicy> make_policy(PolicyRule rule);

}  // namespace temper::orchestrator
