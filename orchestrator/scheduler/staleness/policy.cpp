#include "orchestrator/scheduler/staleness/policy.hpp"

#include "core/check.hpp"
#include "orchestrator/scheduler/staleness/aggregate.hpp"
#include "orchestrator/scheduler/staleness/count.hpp"
#include "orchestrator/scheduler/staleness/drop.hpp"
#include "orchestrator/scheduler/staleness/exact.hpp"
#include "orchestrator/scheduler/staleness/in_order.hpp"
#include "orchestrator/scheduler/staleness/wait.hpp"
#include "orchestrator/scheduler/staleness/window.hpp"

#include <cmath>

namespace temper::orchestrator {

std::uint64_t OutstandingGroups::outstanding_groups() const {
  std::int64_t sum = 0;
  for (const auto& [v0, groups] : outstanding)
    sum += groups;
  return static_cast<std::uint64_t>(sum);
}

std::int64_t OutstandingGroups::waiting(PolicyVersion version) const {
  const auto of = [version](const GroupsByVersion& groups) {
    const auto it = groups.find(version);
    return it == groups.end() ? 0 : it->second;
  };
  return of(outstanding) - of(in_training);
}

std::uint64_t OutstandingGroups::capacity() const {
  return static_cast<std::uint64_t>(std::floor((bound + 1) * batch));
}

void OutstandingGroups::add(PolicyVersion v0) {
  ++outstanding[v0];
  ++dispatched;
  ++since_step;
}

void OutstandingGroups::remove(PolicyVersion v0, Left how) {
  const auto it = outstanding.find(v0);
  TEMPER_CHECK(it != outstanding.end(), "a group leaves that was never added");
  if (--it->second == 0)
    outstanding.erase(it);
  if (how == Left::Trained)
    return;
  --dispatched;  // another one takes its place
  (since_step > 0 ? since_step : at_step) -= 1;
}

void OutstandingGroups::recount(PolicyVersion from, PolicyVersion to) {
  const auto it = outstanding.find(from);
  TEMPER_CHECK(it != outstanding.end(), "a group that was never added is counted anew");
  if (--it->second == 0)
    outstanding.erase(it);
  ++outstanding[to];
}

void OutstandingGroups::publish(PolicyVersion version) {
  step = version;
  in_training.clear();
  since_step = 0;
  at_step = outstanding_groups();
}

bool StalenessPolicy::may_train(const GroupsByVersion& ready, const OutstandingGroups& s) const {
  std::int64_t sum = 0;
  for (const auto& [v0, groups] : ready)
    sum += groups;
  return sum >= s.batch;
}

std::optional<std::vector<GroupId>> StalenessPolicy::select(const DistQueue& queue,
                                                            const OutstandingGroups& s) const {
  const auto size = static_cast<std::size_t>(s.batch);
  if (queue.trainable().size() < size || !may_train(queue.trainable_by_version(), s))
    return std::nullopt;
  std::vector<GroupId> groups;
  groups.reserve(size);
  for (auto it = queue.trainable().begin(); groups.size() < size; ++it)
    groups.push_back(it->second);
  return groups;
}

std::vector<GroupId> StalenessPolicy::evict(const DistQueue&, const OutstandingGroups&) const {
  return {};
}

std::vector<GroupId> StalenessPolicy::trainable_older_than(double most,
                                                           const DistQueue& queue,
                                                           const OutstandingGroups& s) {
  std::vector<GroupId> out;
  for (const auto& [v0, id] : queue.trainable()) {
    if (static_cast<double>(age(v0, s)) <= most)
      break;
    out.push_back(id);
  }
  return out;
}

std::unique_ptr<StalenessPolicy> make_policy(PolicyRule rule) {
  switch (rule) {
    case PolicyRule::Exact:
    case PolicyRule::Sync:
      return std::make_unique<ExactPolicy>();
    case PolicyRule::Aggregate:
      return std::make_unique<AggregatePolicy>();
    case PolicyRule::Count:
      return std::make_unique<CountPolicy>();
    case PolicyRule::Drop:
      return std::make_unique<DropPolicy>();
    case PolicyRule::Wait:
      return std::make_unique<WaitPolicy>();
    case PolicyRule::Window:
      return std::make_unique<WindowPolicy>();
    case PolicyRule::InOrder:
      return std::make_unique<InOrderPolicy>();
  }
  return std::make_unique<ExactPolicy>();
}

}  // namespace temper::orchestrator
