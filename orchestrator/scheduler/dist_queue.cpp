#include "orchestrator/scheduler/dist_queue.hpp"

#include <algorithm>

namespace temper::orchestrator {

std::uint8_t DistQueue::needs(Task task) const {
  switch (task) {
    case Task::Generate:
      return bit(Field::Prompt);
    case Task::Reference:
    case Task::Reward:
      return bit(Field::Response);
    case Task::Train:
      return static_cast<std::uint8_t>(bit(Field::Response) | bit(Field::Reward) |
                                       (with_reference_ ? bit(Field::ReferenceLogprobs) : 0));
  }
  return 0;
}

bool DistQueue::is_ready(const Row& row, Task task) const {
  if (task == Task::Reference && !with_reference_)
    return false;
  return !row.failed && (row.fields & needs(task)) == needs(task) &&
         (row.consumed & bit(task)) == 0 && row.lease[index(task)] == LeaseId{};
}

void DistQueue::add_group(GroupId id, PolicyVersion dispatched) {
  TEMPER_CHECK(groups_.empty() || groups_.rbegin()->first < id, "group ids grow");
  TEMPER_CHECK(has_credit(), "a group needs credits");
  Group& group = groups_[id];
  index_[id.value()] = &group;
  group.dispatched = dispatched;
  group.rows.resize(static_cast<std::size_t>(per_group_));
  const std::uint64_t first = id.value() * static_cast<std::uint64_t>(per_group_);
  for (std::uint64_t k = 0; k < group.rows.size(); ++k)
    put(ResponseId(first + k), Field::Prompt);
}

void DistQueue::remove_group(GroupId id) {
  const auto it = groups_.find(id);
  TEMPER_CHECK(it != groups_.end(), "removing a group that is not in the table");
  const std::uint64_t first = id.value() * static_cast<std::uint64_t>(per_group_);
  for (std::uint64_t k = 0; k < it->second.rows.size(); ++k) {
    const ResponseId r(first + k);
    for (const Task task : {Task::Generate, Task::Reference, Task::Reward}) {
      if ((it->second.rows[k].ready & bit(task)) != 0)
        ready_[index(task)].erase(r);
    }
    for (const LeaseId lease : it->second.rows[k].lease) {
      if (lease != LeaseId{})
        settle(lease);
    }
  }
  if (it->second.trainable)
    trainable_.erase({it->second.dispatched, id});
  index_.erase(id.value());
  groups_.erase(it);
}

bool DistQueue::has_credit() const {
  return (static_cast<std::int64_t>(groups_.size()) + 1) * per_group_ <= credits_;
}

const Group* DistQueue::group(GroupId id) const {
  return find_group(id);
}

Group* DistQueue::find_group(GroupId id) const {
  const auto it = index_.find(id.value());
  return it == index_.end() ? nullptr : it->second;
}

GroupId DistQueue::group_of(ResponseId r) const {
  return GroupId(r.value() / static_cast<std::uint64_t>(per_group_));
}

std::vector<ResponseId> DistQueue::live_responses(GroupId id) const {
  std::vector<ResponseId> out;
  const Group* g = group(id);
  if (g == nullptr)
    return out;
  const std::uint64_t first = id.value() * static_cast<std::uint64_t>(per_group_);
  for (std::uint64_t k = 0; k < g->rows.size(); ++k) {
    if (!g->rows[k].failed)
      out.emplace_back(first + k);
  }
  return out;
}

const Row* DistQueue::row(ResponseId r) const {
  return find_row(r);
}

Row* DistQueue::find_row(ResponseId r) const {
  Group* group = find_group(group_of(r));
  if (group == nullptr)
    return nullptr;
  return &group->rows[r.value() % static_cast<std::uint64_t>(per_group_)];
}

void DistQueue::put(ResponseId r, Field field) {
  Row* row = find_row(r);
  TEMPER_CHECK(row != nullptr, "a field for a response that is not in the table");
  row->fields |= bit(field);
  refresh(r, *row);
}

void DistQueue::set_reward(ResponseId r, double reward) {
  find_row(r)->reward = reward;
  put(r, Field::Reward);
}

void DistQueue::append_tokens(ResponseId r,
                              Tokens prompt,
                              Tokens tokens,
                              const std::vector<actors::Segment>& segments) {
  Row* row = find_row(r);
  row->prompt = prompt;
  row->tokens += tokens;
  for (const actors::Segment& s : segments) {
    if (!row->segments.empty() && row->segments.back().version == s.version) {
      row->segments.back().tokens += s.tokens;
    } else {
      row->segments.push_back(s);
    }
  }
}

void DistQueue::fail(ResponseId r) {
  Row* row = find_row(r);
  row->failed = true;
  refresh(r, *row);
}

void DistQueue::refresh(ResponseId r, Row& row) {
  for (const Task task : {Task::Generate, Task::Reference, Task::Reward}) {
    const bool ready = is_ready(row, task);
    if (ready == ((row.ready & bit(task)) != 0))
      continue;
    row.ready = static_cast<std::uint8_t>(row.ready ^ bit(task));
    if (ready) {
      ready_[index(task)].insert(r);
    } else {
      ready_[index(task)].erase(r);
    }
  }
  const GroupId id = group_of(r);
  refresh_group(id, *find_group(id), row);
}

void DistQueue::refresh_group(GroupId id, Group& group, const Row& changed) {
  const auto allows = [this](const Row& row) { return row.failed || is_ready(row, Task::Train); };
  const bool trainable =
      allows(changed) && std::all_of(group.rows.begin(), group.rows.end(), allows);
  if (trainable == group.trainable)
    return;
  group.trainable = trainable;
  if (trainable) {
    trainable_.insert({group.dispatched, id});
  } else {
    trainable_.erase({group.dispatched, id});
  }
}

LeaseId DistQueue::lease(Task task,
                         ActorId actor,
                         std::vector<ResponseId> responses,
                         Time deadline) {
  const LeaseId id(next_lease_++);
  for (const ResponseId r : responses) {
    Row* row = find_row(r);
    TEMPER_CHECK(row != nullptr && is_ready(*row, task), "leasing a response that is not ready");
    row->lease[index(task)] = id;
    refresh(r, *row);
  }
  const auto open = static_cast<std::int32_t>(responses.size());
  Load& load = loads_[actor];
  ++load.leases;
  load.responses += open;
  leases_[id] = Lease{task, actor, std::move(responses), open, deadline};
  by_deadline_.insert({deadline, id});
  return id;
}

const Lease* DistQueue::find(LeaseId id) const {
  const auto it = leases_.find(id);
  return it == leases_.end() ? nullptr : &it->second;
}

bool DistQueue::holds(LeaseId id, ResponseId r) const {
  const Lease* lease = find(id);
  const Row* row = this->row(r);
  return lease != nullptr && row != nullptr && row->lease[index(lease->task)] == id;
}

void DistQueue::commit(LeaseId id, ResponseId r) {
  Row* row = find_row(r);
  Lease& lease = leases_.at(id);
  row->lease[index(lease.task)] = LeaseId{};
  row->consumed |= bit(lease.task);
  refresh(r, *row);
  settle(id);
}

void DistQueue::give_back(LeaseId id, ResponseId r) {
  Row* row = find_row(r);
  Lease& lease = leases_.at(id);
  row->lease[index(lease.task)] = LeaseId{};
  refresh(r, *row);
  settle(id);
}

void DistQueue::extend(LeaseId id, Time deadline) {
  const auto it = leases_.find(id);
  if (it == leases_.end() || it->second.deadline == deadline)
    return;
  by_deadline_.erase({it->second.deadline, id});
  it->second.deadline = deadline;
  by_deadline_.insert({deadline, id});
}

void DistQueue::revoke(LeaseId id) {
  const std::vector<ResponseId> responses = leases_.at(id).responses;
  for (const ResponseId r : responses) {
    if (holds(id, r))
      give_back(id, r);
  }
}

void DistQueue::revoke_all(ActorId actor) {
  std::vector<LeaseId> theirs;
  for (const auto& [id, lease] : leases_) {
    if (lease.actor == actor)
      theirs.push_back(id);
  }
  for (const LeaseId id : theirs)
    revoke(id);
}

std::optional<Time> DistQueue::next_deadline() const {
  if (by_deadline_.empty())
    return std::nullopt;
  return by_deadline_.begin()->first;
}

std::optional<LeaseId> DistQueue::expired(Time now) const {
  if (by_deadline_.empty() || by_deadline_.begin()->first > now)
    return std::nullopt;
  return by_deadline_.begin()->second;
}

Load DistQueue::load(ActorId actor) const {
  const auto it = loads_.find(actor);
  return it == loads_.end() ? Load{} : it->second;
}

void DistQueue::settle(LeaseId id) {
  const auto it = leases_.find(id);
  Load& load = loads_.at(it->second.actor);
  --load.responses;
  if (--it->second.open > 0)
    return;
  --load.leases;
  by_deadline_.erase({it->second.deadline, id});
  leases_.erase(it);
}

void DistQueue::rebuild() {
  for (auto& ready : ready_)
    ready.clear();
  trainable_.clear();
  leases_.clear();
  loads_.clear();
  by_deadline_.clear();
  index_.clear();
  for (auto& [id, group] : groups_) {
    index_[id.value()] = &group;
    group.trainable = false;
    const std::uint64_t first = id.value() * static_cast<std::uint64_t>(per_group_);
    for (std::uint64_t k = 0; k < group.rows.size(); ++k) {
      group.rows[k].lease = {};
      group.rows[k].ready = 0;
      refresh(ResponseId(first + k), group.rows[k]);
    }
  }
}

}  // namespace temper::orchestrator
