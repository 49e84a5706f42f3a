// DistQueue: a table whose rows are responses and whose columns are fields. A row is ready for a
// task when every field the task needs is present and the task has not consumed it, so reference,
// reward and trainer stream independently from the same rows. Metadata only; payloads lie
// elsewhere.
//
// Work is granted under a lease. A lease that is returned (its actor died, its deadline passed)
// makes its unfinished rows ready again; a commit under a lease that no longer holds the row has no
// effect. So the effect of a row on a task is exactly once. Groups are atomic for training.
// Producers are held back by credits: one per response in the table.
#pragma once

#include "actors/protocol/sample.hpp"
#include "core/describe.hpp"
#include "core/result.hpp"
#include "orchestrator/scheduler/queue/response_ids.hpp"
#include "orchestrator/scheduler/queue/response_set.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace temper::orchestrator {

enum class Task : std::uint8_t { Generate, Reference, Reward, Train };
inline constexpr std::size_t kTasks = 4;
enum class Field : std::uint8_t { Prompt, Response, ReferenceLogprobs, Reward };

struct Row {
  std::uint8_t fields = 0;    ///< Bit per Field present.
  std::uint8_t consumed = 0;  ///< Bit per Task that is done with it.
  bool failed = false;
  Tokens prompt;
  Tokens tokens;  ///< Sampled so far.
  std::vector<actors::Segment> segments;
  double reward = 0;
  std::array<LeaseId, kTasks> lease{};  ///< Current holder per task; 0: none. Not stored.
  std::uint8_t ready = 0;               ///< Bit per Task that can be granted. Not stored.
  std::optional<ActorId> cached_on;     ///< The engine that keeps its prefix. Not stored.
};

struct Group {
  PolicyVersion dispatched;  ///< v0
  std::vector<Row> rows;
  std::optional<PolicyVersion> counted_from;  ///< Its age is; nullopt: v0.
  PolicyVersion age_from() const { return counted_from.value_or(dispatched); }
  bool trainable = false;     ///< Every row is ready to train or failed. Not stored.
  bool judged = false;        ///< The same but for reference scores. Not stored.
  std::uint32_t teacher = 0;  ///< Whose references score it. Not stored.
};

struct Lease {
  Task task = Task::Generate;
  ActorId actor;
  std::vector<ResponseId> responses;
  std::int32_t open = 0;  ///< Responses not committed yet.
  Time deadline{};
  Time filed{};  ///< Under which it is found by deadline: not after `deadline`.
};

/// What an actor has been given and not answered.
struct Load {
  std::int32_t leases = 0;
  std::int32_t responses = 0;
};

void describe(auto& v, Row& r) {
  v.field(1, "fields", r.fields);
  v.field(2, "consumed", r.consumed);
  v.field(3, "failed", r.failed);
  v.field(4, "prompt", r.prompt);
  v.field(5, "tokens", r.tokens);
  v.field(6, "segments", r.segments);
  v.field(7, "reward", r.reward);
}
void describe(auto& v, Group& g) {
  v.field(1, "dispatched", g.dispatched);
  v.field(2, "rows", g.rows);
  v.field(3, "counted_from", g.counted_from);
}

class DistQueue {
 public:
  DistQueue() = default;
  DistQueue(DistQueue&&) = default;
  DistQueue& operator=(DistQueue&&) = default;
  /// `credits`: most responses in the table at once.
  /// `first_lease`: the id of the first lease that is granted.
  DistQueue(bool with_reference,
            std::int32_t responses_per_group,
            std::int64_t credits,
            LeaseId first_lease = LeaseId(1))
      : with_reference_(with_reference),
        per_group_(responses_per_group),
        credits_(credits),
        next_lease_(first_lease.value()) {}

  void set_credits(std::int64_t credits) { credits_ = credits; }
  /// Several teachers: the responses that each can score are found by ready_for(). Requires: the
  /// table has no groups, or rebuild() follows.
  void set_teachers(std::size_t teachers) { ready_for_.assign(teachers, {}); }

  // --- Groups
  /// Requires: has_credit(), an id larger than all before, and a teacher that there is.
  void add_group(GroupId group, PolicyVersion dispatched, std::uint32_t teacher = 0);
  /// After the stored state was read. Requires: the group is in the table, and rebuild() follows.
  void set_teacher(GroupId group, std::uint32_t teacher) { groups_.at(group).teacher = teacher; }
  void remove_group(GroupId group);
  /// From now on the group's age is counted from this version.
  void count_age(GroupId group, PolicyVersion from);
  /// Mean version of the group's tokens, rounded down; none before all are there.
  std::optional<PolicyVersion> mean_version(GroupId group) const;
  bool has_credit() const;
  /// Null if the group is not in the table. Valid until it is removed.
  const Group* group(GroupId id) const;
  const std::map<GroupId, Group>& groups() const { return groups_; }
  ResponseIds ids() const { return ResponseIds(per_group_); }
  GroupId group_of(ResponseId r) const { return ids().group_of(r); }
  /// An update that holds it is under way. Requires: it is in the table.
  bool in_training(GroupId id) const;
  /// Groups whose every response is ready to train or failed, by the version that their age is
  /// counted from, then by id.
  const std::set<std::pair<PolicyVersion, GroupId>>& trainable() const { return trainable_; }
  /// How many of them count from each version.
  const std::map<PolicyVersion, std::int64_t>& trainable_by_version() const {
    return trainable_by_version_;
  }
  /// The same with those that lack nothing but reference scores.
  const std::map<PolicyVersion, std::int64_t>& judged_by_version() const {
    return judged_by_version_;
  }
  /// Responses in the table that are generated.
  std::int64_t generated() const { return generated_; }
  /// Every response of the group that has not failed is judged, with the same reward.
  bool rewards_equal(GroupId group) const;
  /// Responses of the group that have not failed.
  std::vector<ResponseId> live_responses(GroupId group) const;

  // --- Rows
  /// Null if the response is not (or no longer) in the table.
  const Row* row(ResponseId r) const;
  static bool is_generated(const Row& row) { return has(row, Field::Response); }
  /// Some task holds the response. Requires: it is in the table.
  bool is_leased(ResponseId r) const;
  /// Rows ready for a streaming task (not Train), in dispatch order.
  const ResponseSet& ready(Task task) const { return ready_[index(task)]; }
  /// Those of them that are ready for a reference of this teacher.
  const ResponseSet& ready_for(std::uint32_t teacher) const {
    return ready_for_.empty() ? ready(Task::Reference) : ready_for_[teacher];
  }
  void put(ResponseId r, Field field);
  void append_tokens(ResponseId r,
                     Tokens prompt,
                     Tokens tokens,
                     const std::vector<actors::Segment>& segments);
  /// The response takes no further part; its group continues without it.
  void fail(ResponseId r);
  /// Back to its prompt: what it had is gone. Requires: it has not failed, and no lease holds it.
  void start_over(ResponseId r);

  // --- Leases
  /// Requires: every response is ready for the task (for Train: of trainable groups).
  LeaseId lease(Task task, ActorId actor, std::vector<ResponseId> responses, Time deadline);
  const Lease* find(LeaseId id) const;
  /// The id that the next lease gets: from there on none was granted.
  LeaseId next_lease() const { return LeaseId(next_lease_); }
  /// True if the lease still holds the response for its task. Only then do results count.
  bool holds(LeaseId id, ResponseId r) const;
  /// The task has consumed the response. Requires: holds().
  void commit(LeaseId id, ResponseId r);
  /// Commits, and marks the field that the task filled as present.
  void commit(LeaseId id, ResponseId r, Field made);
  void commit_reward(LeaseId id, ResponseId r, double reward);
  /// The attempt ended without a result; the response is ready again. Requires: holds().
  void give_back(LeaseId id, ResponseId r);
  /// Its prefix is cached by this engine, or by none.
  void set_cached(ResponseId r, std::optional<ActorId> engine);
  /// Moves the deadline of a lease that shows progress.
  void extend(LeaseId id, Time deadline);
  /// Ends the lease; its open responses become ready again.
  void revoke(LeaseId id);
  /// Revokes all leases of an actor.
  void revoke_all(ActorId actor);
  Load load(ActorId actor) const {
    return actor.value() < loads_.size() ? loads_[actor.value()] : Load();
  }
  /// Responses that the actor is generating, by id.
  std::vector<ResponseId> generating(ActorId actor) const;
  std::optional<Time> next_deadline() const;
  /// The earliest lease whose deadline is at or before `now`.
  std::optional<LeaseId> expired(Time now) const;

  /// Stored state: the table without leases.
  friend void describe(auto& v, DistQueue& q) {
    v.field(1, "with_reference", q.with_reference_);
    v.field(2, "per_group", q.per_group_);
    v.field(3, "credits", q.credits_);
    v.field(4, "next_lease", q.next_lease_);
    v.field(5, "groups", q.groups_);
  }
  /// To be called after the stored state was read: derives the readiness of every row.
  void rebuild();

 private:
  static constexpr std::size_t index(Task t) { return static_cast<std::size_t>(t); }
  static constexpr std::uint8_t bit(Field f) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(f));
  }
  static constexpr std::uint8_t bit(Task t) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(t));
  }
  std::uint8_t needs(Task task) const;
  bool is_ready(const Row& row, Task task) const;
  /// Ready to train but, perhaps, for its reference scores.
  static bool is_judged(const Row& row);
  static bool has(const Row& row, Field f) { return (row.fields & bit(f)) != 0; }
  Group* find_group(GroupId id) const;
  Row* find_row(ResponseId r) const;
  void add_field(Row& row, Field field);
  void refresh(ResponseId r, Row& row);
  /// The response becomes ready for the task, or no longer is.
  void set_ready(Task task, ResponseId r, const Group& group, bool ready);
  void refresh_group(GroupId id, Group& group, const Row& changed);
  void set_trainable(GroupId id, Group& group, bool trainable);
  void set_judged(Group& group, bool judged);
  void file(GroupId id, Group& group);
  void unfile(GroupId id);
  void refile_first();
  /// One response of the lease is settled; the last one ends it.
  void settle(LeaseId id);

  bool with_reference_ = false;
  std::int32_t per_group_ = 1;
  std::int64_t credits_ = 0;

  std::uint64_t next_lease_ = 1;
  std::map<GroupId, Group> groups_;

  // Derived from the above and from the leases.
  /// Into groups_: the group of id window_begin_ + i, or null; before window_head_ all are null.
  /// Ids grow, and groups leave about as they came.
  std::vector<Group*> window_;
  std::uint64_t window_begin_ = 0;
  std::size_t window_head_ = 0;
  std::array<ResponseSet, kTasks> ready_;
  std::vector<ResponseSet> ready_for_;  ///< By teacher; empty unless there are several.
  std::set<std::pair<PolicyVersion, GroupId>> trainable_;
  std::map<PolicyVersion, std::int64_t> trainable_by_version_;
  std::map<PolicyVersion, std::int64_t> judged_by_version_;
  std::int64_t generated_ = 0;
  std::unordered_map<LeaseId, Lease> leases_;  ///< Never iterated to decide an order.
  const std::set<LeaseId>& leased_by(ActorId actor) const {
    static const std::set<LeaseId> kNone;
    return actor.value() < leased_.size() ? leased_[actor.value()] : kNone;
  }
  // By actor, as far as any has had a lease.
  std::vector<Load> loads_;
  std::vector<std::set<LeaseId>> leased_;
  /// By `filed`, which may lag behind a deadline that was moved; never that of the first.
  std::set<std::pair<Time, LeaseId>> by_deadline_;
};

}  // namespace temper::orchestrator
