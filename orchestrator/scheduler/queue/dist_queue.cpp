#include "orchestrator/scheduler/queue/dist_queue.hpp"

#include <algorithm>
#include <iterator>

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

bool DistQueue::is_judged(const Row& row) {
  return has(row, Field::Response) && has(row, Field::Reward) &&
         (row.consumed & bit(Task::Train)) == 0 && row.lease[index(Task::Train)] == LeaseId{};
}

void DistQueue::add_group(GroupId id, PolicyVersion dispatched, std::uint32_t teacher) {
  TEMPER_CHECK(groups_.empty() || groups_.rbegin()->first < id, "group ids grow");
  TEMPER_CHECK(has_credit(), "a group needs credits");
  Group& group = groups_[id];
  file(id, group);
  group.dispatched = dispatched;
  group.teacher = teacher;
  group.rows.resize(static_cast<std::size_t>(per_group_));
  for (std::size_t k = 0; k < group.rows.size(); ++k)
    put(ids().at(id, k), Field::Prompt);
}

void DistQueue::remove_group(GroupId id) {
  const auto it = groups_.find(id);
  TEMPER_CHECK(it != groups_.end(), "removing a group that is not in the table");
  for (std::size_t k = 0; k < it->second.rows.size(); ++k) {
    const ResponseId r = ids().at(id, k);
    for (const Task task : {Task::Generate, Task::Reference, Task::Reward}) {
      if ((it->second.rows[k].ready & bit(task)) != 0)
        set_ready(task, r, it->second, false);
    }
    generated_ -= has(it->second.rows[k], Field::Response) ? 1 : 0;
    for (const LeaseId lease : it->second.rows[k].lease) {
      if (lease != LeaseId{})
        settle(lease);
    }
  }
  set_trainable(id, it->second, false);
  set_judged(it->second, false);
  unfile(id);
  groups_.erase(it);
}

void DistQueue::file(GroupId id, Group& group) {
  if (window_.empty())
    window_begin_ = id.value();
  window_.resize(id.value() - window_begin_, nullptr);
  window_.push_back(&group);
}

void DistQueue::unfile(GroupId id) {
  window_[id.value() - window_begin_] = nullptr;
  while (window_head_ < window_.size() && window_[window_head_] == nullptr)
    ++window_head_;
  if (2 * window_head_ < window_.size())
    return;
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(window_head_));
  window_begin_ += window_head_;
  window_head_ = 0;
}

bool DistQueue::has_credit() const {
  return (static_cast<std::int64_t>(groups_.size()) + 1) * per_group_ <= credits_;
}

const Group* DistQueue::group(GroupId id) const {
  return find_group(id);
}

Group* DistQueue::find_group(GroupId id) const {
  const std::uint64_t at = id.value() - window_begin_;  // wraps for a group that left
  return at < window_.size() ? window_[at] : nullptr;
}

bool DistQueue::in_training(GroupId id) const {
  const std::vector<Row>& rows = find_group(id)->rows;
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.lease[index(Task::Train)] != LeaseId{};
  });
}

std::vector<ResponseId> DistQueue::live_responses(GroupId id) const {
  std::vector<ResponseId> out;
  const Group* g = group(id);
  if (g == nullptr)
    return out;
  out.reserve(g->rows.size());
  for (std::size_t k = 0; k < g->rows.size(); ++k) {
    if (!g->rows[k].failed)
      out.push_back(ids().at(id, k));
  }
  return out;
}

bool DistQueue::rewards_equal(GroupId id) const {
  const Row* first = nullptr;
  for (const Row& row : find_group(id)->rows) {
    if (row.failed)
      continue;
    if (!has(row, Field::Reward) || (first != nullptr && row.reward != first->reward))
      return false;
    first = &row;
  }
  return first != nullptr;
}

const Row* DistQueue::row(ResponseId r) const {
  return find_row(r);
}

Row* DistQueue::find_row(ResponseId r) const {
  Group* group = find_group(group_of(r));
  if (group == nullptr)
    return nullptr;
  return &group->rows[ids().place_of(r)];
}

void DistQueue::put(ResponseId r, Field field) {
  Row* row = find_row(r);
  TEMPER_CHECK(row != nullptr, "a field for a response that is not in the table");
  add_field(*row, field);
  refresh(r, *row);
}

void DistQueue::add_field(Row& row, Field field) {
  generated_ += field == Field::Response && !has(row, field) ? 1 : 0;
  row.fields |= bit(field);
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

bool DistQueue::is_leased(ResponseId r) const {
  return std::ranges::any_of(find_row(r)->lease, [](LeaseId id) { return id != LeaseId{}; });
}

void DistQueue::start_over(ResponseId r) {
  Row* row = find_row(r);
  TEMPER_CHECK(!row->failed && !is_leased(r), "starting a response over that failed or is leased");
  generated_ -= has(*row, Field::Response) ? 1 : 0;
  const Tokens prompt = row->prompt;
  const std::uint8_t was_ready = row->ready;
  *row = {};
  row->fields = bit(Field::Prompt);
  row->prompt = prompt;
  row->ready = was_ready;
  refresh(r, *row);
}

void DistQueue::set_ready(Task task, ResponseId r, const Group& group, bool ready) {
  const auto set_in = [&](ResponseSet& set) { ready ? set.insert(r) : set.erase(r); };
  set_in(ready_[index(task)]);
  if (task == Task::Reference && !ready_for_.empty())
    set_in(ready_for_[group.teacher]);
}

void DistQueue::refresh(ResponseId r, Row& row) {
  const GroupId id = group_of(r);
  Group& group = *find_group(id);
  for (const Task task : {Task::Generate, Task::Reference, Task::Reward}) {
    const bool ready = is_ready(row, task);
    if (ready == ((row.ready & bit(task)) != 0))
      continue;
    row.ready = static_cast<std::uint8_t>(row.ready ^ bit(task));
    set_ready(task, r, group, ready);
  }
  refresh_group(id, group, row);
}

void DistQueue::refresh_group(GroupId id, Group& group, const Row& changed) {
  const auto allows = [this](const Row& row) { return row.failed || is_ready(row, Task::Train); };
  const bool trainable =
      allows(changed) && std::all_of(group.rows.begin(), group.rows.end(), allows);
  set_trainable(id, group, trainable);
  if (!with_reference_)
    return set_judged(group, trainable);
  const auto judged = [](const Row& row) { return row.failed || is_judged(row); };
  set_judged(
      group,
      trainable || (judged(changed) && std::all_of(group.rows.begin(), group.rows.end(), judged)));
}

void DistQueue::set_judged(Group& group, bool judged) {
  if (judged == group.judged)
    return;
  group.judged = judged;
  if (judged) {
    ++judged_by_version_[group.age_from()];
    return;
  }
  const auto count = judged_by_version_.find(group.age_from());
  if (--count->second == 0)
    judged_by_version_.erase(count);
}

void DistQueue::set_trainable(GroupId id, Group& group, bool trainable) {
  if (trainable == group.trainable)
    return;
  group.trainable = trainable;
  if (trainable) {
    trainable_.insert({group.age_from(), id});
    ++trainable_by_version_[group.age_from()];
    return;
  }
  trainable_.erase({group.age_from(), id});
  const auto count = trainable_by_version_.find(group.age_from());
  if (--count->second == 0)
    trainable_by_version_.erase(count);
}

void DistQueue::count_age(GroupId id, PolicyVersion from) {
  Group& group = *find_group(id);
  const bool trainable = group.trainable, judged = group.judged;
  set_trainable(id, group, false);
  set_judged(group, false);
  group.counted_from = from;
  set_judged(group, judged);
  set_trainable(id, group, trainable);
}

std::optional<PolicyVersion> DistQueue::mean_version(GroupId id) const {
  std::uint64_t tokens = 0, sum = 0;
  for (const Row& row : find_group(id)->rows) {
    if ((row.consumed & bit(Task::Generate)) == 0)
      return std::nullopt;
    for (const actors::Segment& s : row.segments) {
      const auto count = static_cast<std::uint64_t>(s.tokens.count());
      tokens += count;
      sum += count * s.version.value();
    }
  }
  return tokens == 0 ? std::nullopt : std::optional(PolicyVersion(sum / tokens));
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
  leased_.resize(std::max<std::size_t>(leased_.size(), actor.value() + 1));
  loads_.resize(leased_.size());
  ++loads_[actor.value()].leases;
  loads_[actor.value()].responses += open;
  leased_[actor.value()].insert(leased_[actor.value()].end(), id);
  leases_[id] = Lease{task, actor, std::move(responses), open, deadline, deadline};
  by_deadline_.insert({deadline, id});
  return id;
}

const Lease* DistQueue::find(LeaseId id) const {
  const auto it = leases_.find(id);
  return it == leases_.end() ? nullptr : &it->second;
}

bool DistQueue::holds(LeaseId id, ResponseId r) const {
  const Row* row = this->row(r);
  // Ids are never used twice, and a lease that is over holds no row.
  return row != nullptr && id != LeaseId{} &&
         std::find(row->lease.begin(), row->lease.end(), id) != row->lease.end();
}

void DistQueue::commit(LeaseId id, ResponseId r) {
  Row* row = find_row(r);
  Lease& lease = leases_.at(id);
  row->lease[index(lease.task)] = LeaseId{};
  row->consumed |= bit(lease.task);
  refresh(r, *row);
  settle(id);
}

void DistQueue::commit(LeaseId id, ResponseId r, Field made) {
  add_field(*find_row(r), made);
  commit(id, r);
}

void DistQueue::commit_reward(LeaseId id, ResponseId r, double reward) {
  find_row(r)->reward = reward;
  commit(id, r, Field::Reward);
}

void DistQueue::give_back(LeaseId id, ResponseId r) {
  Row* row = find_row(r);
  Lease& lease = leases_.at(id);
  row->lease[index(lease.task)] = LeaseId{};
  refresh(r, *row);
  settle(id);
}

void DistQueue::set_cached(ResponseId r, std::optional<ActorId> engine) {
  find_row(r)->cached_on = engine;
}

void DistQueue::extend(LeaseId id, Time deadline) {
  const auto it = leases_.find(id);
  if (it == leases_.end() || it->second.deadline == deadline)
    return;
  // Later deadlines are filed when the old one comes to the front: most leases end before.
  Lease& lease = it->second;
  lease.deadline = deadline;
  if (deadline < lease.filed) {
    by_deadline_.erase({lease.filed, id});
    lease.filed = deadline;
    by_deadline_.insert({deadline, id});
  }
  refile_first();
}

void DistQueue::refile_first() {
  while (!by_deadline_.empty()) {
    const LeaseId id = by_deadline_.begin()->second;
    Lease& lease = leases_.at(id);
    if (lease.filed == lease.deadline)
      return;
    auto node = by_deadline_.extract(by_deadline_.begin());
    lease.filed = lease.deadline;
    node.value() = {lease.filed, id};
    by_deadline_.insert(std::move(node));
  }
}

void DistQueue::revoke(LeaseId id) {
  const std::vector<ResponseId> responses = leases_.at(id).responses;
  for (const ResponseId r : responses) {
    if (holds(id, r))
      give_back(id, r);
  }
}

void DistQueue::revoke_all(ActorId actor) {
  const std::set<LeaseId> theirs = leased_by(actor);  // Each leaves the set.
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

std::vector<ResponseId> DistQueue::generating(ActorId actor) const {
  std::vector<ResponseId> out;
  for (const LeaseId id : leased_by(actor)) {
    const Lease& lease = leases_.at(id);
    if (lease.task != Task::Generate)
      continue;
    std::ranges::copy_if(
        lease.responses, std::back_inserter(out), [&](ResponseId r) { return holds(id, r); });
  }
  std::ranges::sort(out);
  return out;
}

void DistQueue::settle(LeaseId id) {
  const auto it = leases_.find(id);
  const std::uint32_t actor = it->second.actor.value();
  --loads_.at(actor).responses;
  if (--it->second.open > 0)
    return;
  --loads_[actor].leases;
  leased_[actor].erase(id);
  by_deadline_.erase({it->second.filed, id});
  leases_.erase(it);
  refile_first();
}

void DistQueue::rebuild() {
  per_group_ = static_cast<std::int32_t>(ids().per_group());  // as all else counts it
  ready_.fill({});
  set_teachers(ready_for_.size());
  trainable_.clear();
  trainable_by_version_.clear();
  judged_by_version_.clear();
  generated_ = 0;
  leases_.clear();
  leased_.clear();
  loads_.clear();
  by_deadline_.clear();
  window_.clear();
  window_head_ = 0;
  for (auto& [id, group] : groups_) {
    file(id, group);
    group.trainable = group.judged = false;
    for (std::size_t k = 0; k < group.rows.size(); ++k) {
      group.rows[k].lease = {};
      group.rows[k].cached_on.reset();
      group.rows[k].ready = 0;
      generated_ += has(group.rows[k], Field::Response) ? 1 : 0;
      refresh(ids().at(id, k), group.rows[k]);
    }
  }
}

}  // namespace temper::orchestrator
