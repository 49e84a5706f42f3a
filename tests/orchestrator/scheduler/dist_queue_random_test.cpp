// DistQueue against the naive table over random operations: the same rows are ready, the same
// leases hold them, and no task consumes a response twice.
#include "core/msgpack.hpp"
#include "core/random.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"
#include "tests/orchestrator/scheduler/naive_queue.hpp"
#include "tests/orchestrator/scheduler/ready_responses.hpp"
#include "tests/support/times.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

constexpr ActorId kConsumer(3);
constexpr Task kStreaming[] = {Task::Generate, Task::Reference, Task::Reward};
constexpr std::size_t kGroups = 8;  ///< Most in the table at once.
constexpr std::uint64_t kLatest = 1000;
constexpr std::uint32_t kTeachers = 2;

/// Random operations on the queue and on the naive one.
class RandomTable {
 public:
  RandomTable(References references, std::int32_t per_group, std::uint64_t seed)
      : random_(seed, "test.dist_queue"),
        queue_(references == References::Needed,
               per_group,
               static_cast<std::int64_t>(kGroups) * per_group),
        naive_(references == References::Needed, static_cast<std::uint64_t>(per_group)) {
    queue_.set_teachers(kTeachers);
  }

  void step() {
    switch (random_.below(16)) {
      case 0:
        return add();
      case 1:
        return remove();
      case 2:
        return naive_.leases().empty() ? void() : end_of(any_lease());
      case 3:
        return naive_.leases().empty() ? void() : extend(any_lease());
      case 4:
        return random_.chance(0.2) ? fail() : random_.chance(0.3) ? start_over() : void();
      case 5:
        return random_.chance(0.1) ? restart() : void();
      case 6:
        return age();
      default:
        return random_.chance(0.4) ? grant() : answer();
    }
  }

  void expect_equal() const {
    for (const Task task : kStreaming)
      ASSERT_EQ(ready(queue_, task), naive_.ready(task)) << static_cast<int>(task);
    for (std::uint32_t teacher = 0; teacher < kTeachers; ++teacher) {
      Responses expected = naive_.ready(Task::Reference);
      std::erase_if(expected, [&](ResponseId r) { return teacher_of(r) != teacher; });
      Responses found;
      for (const ResponseId r : queue_.ready_for(teacher))
        found.push_back(r);
      ASSERT_EQ(found, expected) << teacher;
    }
    ASSERT_EQ(queue_.trainable(), naive_.trainable());
    ASSERT_EQ(queue_.trainable_by_version(), naive_.trainable_by_version());
    ASSERT_EQ(queue_.judged_by_version(), naive_.judged_by_version());
    ASSERT_EQ(queue_.generated(), naive_.generated());
    ASSERT_EQ(queue_.has_credit(), naive_.ages().size() < kGroups);
    ASSERT_EQ(queue_.next_deadline(), naive_.next_deadline());
    ASSERT_EQ(queue_.expired(at(kLatest)).has_value(), !naive_.leases().empty());
    for (const ActorId a : {ActorId(0), ActorId(1), ActorId(2), kConsumer}) {
      ASSERT_EQ(queue_.load(a).leases, naive_.load(a).leases);
      ASSERT_EQ(queue_.load(a).responses, naive_.load(a).responses);
      ASSERT_EQ(queue_.generating(a), naive_.generating(a));
    }
    for (const auto& [g, age] : naive_.ages())
      ASSERT_EQ(queue_.live_responses(g), naive_.live_responses(g));
    for (const auto& [g, group] : queue_.groups())
      expect_equal_holders(g);
    for (const auto& [row_task, times] : commits_)
      ASSERT_EQ(times, 1) << "a task has consumed a response twice";
  }

 private:
  std::uint32_t teacher_of(ResponseId r) const { return teachers_.at(queue_.group_of(r)); }
  void expect_equal_holders(GroupId g) const {
    for (const ResponseId r : naive_.responses(g)) {
      for (std::uint64_t l = last_lease_ > 12 ? last_lease_ - 12 : 0; l <= last_lease_; ++l)
        ASSERT_EQ(queue_.holds(LeaseId(l), r), naive_.holds(LeaseId(l), r));
    }
  }
  template <class C>
  auto any_of(const C& all) {
    return std::next(all.begin(), static_cast<std::ptrdiff_t>(random_.below(all.size())));
  }
  LeaseId any_lease() { return any_of(naive_.leases())->first; }
  Time some_time() { return at(random_.below(kLatest)); }

  void add() {
    if (!queue_.has_credit())
      return;
    next_group_ += 1 + (random_.chance(0.1) ? random_.below(3) : 0);
    const PolicyVersion dispatched(random_.below(4));
    const auto teacher = static_cast<std::uint32_t>(random_.below(kTeachers));
    teachers_[GroupId(next_group_)] = teacher;
    queue_.add_group(GroupId(next_group_), dispatched, teacher);
    naive_.add_group(GroupId(next_group_), dispatched);
  }
  void remove() {
    if (naive_.ages().size() < 5)
      return;
    const GroupId g = random_.chance(0.7) ? naive_.ages().begin()->first  // Mostly in order.
                                          : any_of(naive_.ages())->first;
    queue_.remove_group(g);
    naive_.remove_group(g);
  }
  void grant() {
    if (random_.chance(0.15))
      return train();
    const Task task = kStreaming[random_.below(3)];
    Responses rows = naive_.ready(task);
    std::erase_if(rows, [this](ResponseId) { return random_.chance(0.5); });
    lease(task, ActorId(static_cast<std::uint32_t>(random_.below(3))), rows);
  }
  void train() {
    Responses rows;
    for (const auto& [age, g] : naive_.trainable()) {
      if (random_.chance(0.5))
        std::ranges::copy(naive_.live_responses(g), std::back_inserter(rows));
    }
    lease(Task::Train, kConsumer, rows);
  }
  void lease(Task task, ActorId actor, const Responses& rows) {
    if (rows.empty())
      return;
    const Time deadline = some_time();
    const LeaseId id = queue_.lease(task, actor, rows, deadline);
    EXPECT_GT(id.value(), last_lease_);
    last_lease_ = id.value();
    naive_.lease(id, task, actor, rows, deadline);
  }
  /// Some of what a lease still holds is answered or handed back.
  void answer() {
    if (naive_.leases().empty())
      return;
    const auto [id, grant] = *any_of(naive_.leases());
    for (const ResponseId r : grant.open) {
      if (random_.chance(0.3))
        continue;
      if (random_.chance(0.2)) {
        queue_.give_back(id, r);
        naive_.give_back(id, r);
      } else {
        commit(id, grant.task, r);
      }
    }
  }
  void commit(LeaseId id, Task task, ResponseId r) {
    ++commits_[{r, task}];
    switch (task) {
      case Task::Generate:
        queue_.commit(id, r, Field::Response);
        return naive_.commit(id, r, Field::Response);
      case Task::Reference:
        queue_.commit(id, r, Field::ReferenceLogprobs);
        return naive_.commit(id, r, Field::ReferenceLogprobs);
      case Task::Reward:
        queue_.commit_reward(id, r, 1);
        return naive_.commit(id, r, Field::Reward);
      case Task::Train:
        queue_.commit(id, r);
        return naive_.commit(id, r, std::nullopt);
    }
  }
  void end_of(LeaseId id) {
    if (random_.chance(0.5)) {
      queue_.revoke(id);
      return naive_.revoke(id);
    }
    const ActorId actor = naive_.leases().at(id).actor;
    queue_.revoke_all(actor);
    naive_.revoke_all(actor);
  }
  void extend(LeaseId id) {
    const Time deadline = some_time();
    queue_.extend(id, deadline);
    naive_.extend(id, deadline);
  }
  void fail() {
    if (naive_.ages().empty())
      return;
    const ResponseId r = *any_of(naive_.responses(any_of(naive_.ages())->first));
    queue_.fail(r);
    naive_.fail(r);
  }
  void start_over() {
    if (naive_.ages().empty())
      return;
    const ResponseId r = *any_of(naive_.responses(any_of(naive_.ages())->first));
    if (naive_.failed(r) || naive_.leased(r))
      return;
    queue_.start_over(r);
    naive_.start_over(r);
    for (const Task task : {Task::Generate, Task::Reference, Task::Reward, Task::Train})
      commits_.erase({r, task});
  }
  void age() {
    if (naive_.ages().empty())
      return;
    const GroupId g = any_of(naive_.ages())->first;
    const PolicyVersion from(random_.below(6));
    queue_.count_age(g, from);
    naive_.count_age(g, from);
  }
  void restart() {
    DistQueue back = decode<DistQueue>(encode(queue_)).value();
    queue_ = std::move(back);
    queue_.set_teachers(kTeachers);
    for (const auto& [g, group] : queue_.groups())
      queue_.set_teacher(g, teachers_.at(g));
    queue_.rebuild();
    naive_.forget_leases();
  }

  Random random_;
  DistQueue queue_;
  testing::NaiveQueue naive_;
  std::uint64_t next_group_ = 0, last_lease_ = 0;
  std::map<std::pair<ResponseId, Task>, int> commits_;
  std::map<GroupId, std::uint32_t> teachers_;  ///< Of all groups that were added.
};

TEST(DistQueue, AgreesWithTheNaiveTableWhateverHappens) {
  for (const References references : {References::None, References::Needed}) {
    for (const std::int32_t per_group : {1, 3}) {
      RandomTable table(references, per_group, 7 + static_cast<std::uint64_t>(per_group));
      for (int i = 0; i < 400; ++i) {
        table.step();
        table.expect_equal();
        ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "operation " << i;
      }
    }
  }
}

}  // namespace
}  // namespace temper::orchestrator
