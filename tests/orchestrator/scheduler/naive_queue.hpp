// DistQueue by its definition: a flat table of responses, and every answer computed from all of it
// each time.
#pragma once

#include "orchestrator/scheduler/queue/dist_queue.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace temper::orchestrator::testing {

class NaiveQueue {
 public:
  struct Grant {
    Task task;
    ActorId actor;
    std::set<ResponseId> open;
    Time deadline;
  };

  NaiveQueue(bool with_reference, std::uint64_t responses_per_group)
      : with_reference_(with_reference), per_group_(responses_per_group) {}

  const std::map<LeaseId, Grant>& leases() const { return leases_; }
  const std::map<GroupId, PolicyVersion>& ages() const { return ages_; }
  std::vector<ResponseId> responses(GroupId g) const {
    std::vector<ResponseId> out;
    for (std::uint64_t k = 0; k < per_group_; ++k)
      out.emplace_back(g.value() * per_group_ + k);
    return out;
  }

  void add_group(GroupId g, PolicyVersion dispatched) {
    ages_[g] = dispatched;
    for (const ResponseId r : responses(g))
      rows_[r].fields.insert(Field::Prompt);
  }
  void remove_group(GroupId g) {
    for (const ResponseId r : responses(g)) {
      for (const LeaseId l : holders(r))
        settle(l, r);
      rows_.erase(r);
    }
    ages_.erase(g);
  }
  void count_age(GroupId g, PolicyVersion from) { ages_[g] = from; }
  void fail(ResponseId r) { rows_.at(r).failed = true; }
  bool failed(ResponseId r) const { return rows_.at(r).failed; }
  bool leased(ResponseId r) const { return !holders(r).empty(); }
  void start_over(ResponseId r) {
    rows_.at(r) = Entry();
    rows_.at(r).fields.insert(Field::Prompt);
  }

  void lease(LeaseId l, Task task, ActorId a, const std::vector<ResponseId>& rs, Time deadline) {
    leases_[l] = {task, a, {rs.begin(), rs.end()}, deadline};
  }
  void commit(LeaseId l, ResponseId r, std::optional<Field> made) {
    rows_.at(r).consumed.insert(leases_.at(l).task);
    if (made)
      rows_.at(r).fields.insert(*made);
    settle(l, r);
  }
  void give_back(LeaseId l, ResponseId r) { settle(l, r); }
  void revoke(LeaseId l) { leases_.erase(l); }
  void revoke_all(ActorId actor) {
    std::erase_if(leases_, [&](const auto& l) { return l.second.actor == actor; });
  }
  void extend(LeaseId l, Time deadline) { leases_.at(l).deadline = deadline; }
  void forget_leases() { leases_.clear(); }

  std::vector<ResponseId> ready(Task task) const {
    std::vector<ResponseId> out;
    for (const auto& [r, row] : rows_) {
      if (!row.failed && has_all(row, needs(task)) && is_free(r, task) &&
          (task != Task::Reference || with_reference_))
        out.push_back(r);
    }
    return out;
  }
  bool is_trainable(GroupId g) const { return every_row(g, needs(Task::Train)); }
  bool is_judged(GroupId g) const { return every_row(g, {Field::Response, Field::Reward}); }
  std::set<std::pair<PolicyVersion, GroupId>> trainable() const {
    std::set<std::pair<PolicyVersion, GroupId>> out;
    for (const auto& [g, age] : ages_) {
      if (is_trainable(g))
        out.insert({age, g});
    }
    return out;
  }
  std::map<PolicyVersion, std::int64_t> trainable_by_version() const {
    std::map<PolicyVersion, std::int64_t> out;
    for (const auto& [age, g] : trainable())
      ++out[age];
    return out;
  }
  std::map<PolicyVersion, std::int64_t> judged_by_version() const {
    std::map<PolicyVersion, std::int64_t> out;
    for (const auto& [g, age] : ages_) {
      if (is_judged(g))
        ++out[age];
    }
    return out;
  }
  std::int64_t generated() const {
    return std::count_if(rows_.begin(), rows_.end(), [](const auto& row) {
      return row.second.fields.contains(Field::Response);
    });
  }
  std::vector<ResponseId> live_responses(GroupId g) const {
    std::vector<ResponseId> out;
    for (const ResponseId r : responses(g)) {
      if (!rows_.at(r).failed)
        out.push_back(r);
    }
    return out;
  }
  bool holds(LeaseId l, ResponseId r) const {
    return leases_.contains(l) && leases_.at(l).open.contains(r);
  }
  Load load(ActorId actor) const {
    Load load;
    for (const auto& [l, grant] : leases_) {
      if (grant.actor != actor)
        continue;
      ++load.leases;
      load.responses += static_cast<std::int32_t>(grant.open.size());
    }
    return load;
  }
  std::vector<ResponseId> generating(ActorId actor) const {
    std::set<ResponseId> out;
    for (const auto& [l, grant] : leases_) {
      if (grant.actor == actor && grant.task == Task::Generate)
        out.insert(grant.open.begin(), grant.open.end());
    }
    return {out.begin(), out.end()};
  }
  std::optional<Time> next_deadline() const {
    std::optional<Time> earliest;
    for (const auto& [l, grant] : leases_)
      earliest = earliest ? std::min(*earliest, grant.deadline) : grant.deadline;
    return earliest;
  }

 private:
  struct Entry {
    std::set<Field> fields;
    std::set<Task> consumed;
    bool failed = false;
  };

  std::set<Field> needs(Task task) const {
    if (task == Task::Generate)
      return {Field::Prompt};
    if (task != Task::Train)
      return {Field::Response};
    std::set<Field> all{Field::Response, Field::Reward};
    if (with_reference_)
      all.insert(Field::ReferenceLogprobs);
    return all;
  }
  static bool has_all(const Entry& row, const std::set<Field>& fields) {
    return std::includes(row.fields.begin(), row.fields.end(), fields.begin(), fields.end());
  }
  /// The task has neither consumed it nor holds it.
  bool is_free(ResponseId r, Task task) const {
    return !rows_.at(r).consumed.contains(task) &&
           std::none_of(leases_.begin(), leases_.end(), [&](const auto& l) {
             return l.second.task == task && l.second.open.contains(r);
           });
  }
  bool every_row(GroupId g, const std::set<Field>& fields) const {
    const auto all = responses(g);
    return std::all_of(all.begin(), all.end(), [&](ResponseId r) {
      const Entry& row = rows_.at(r);
      return row.failed || (has_all(row, fields) && is_free(r, Task::Train));
    });
  }
  std::vector<LeaseId> holders(ResponseId r) const {
    std::vector<LeaseId> out;
    for (const auto& [l, grant] : leases_) {
      if (grant.open.contains(r))
        out.push_back(l);
    }
    return out;
  }
  void settle(LeaseId l, ResponseId r) {
    leases_.at(l).open.erase(r);
    if (leases_.at(l).open.empty())
      leases_.erase(l);
  }

  const bool with_reference_;
  const std::uint64_t per_group_;
  std::map<ResponseId, Entry> rows_;
  std::map<GroupId, PolicyVersion> ages_;
  std::map<LeaseId, Grant> leases_;
};

}  // namespace temper::orchestrator::testing
