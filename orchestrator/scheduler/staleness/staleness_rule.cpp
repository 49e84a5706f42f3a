#include "orchestrator/scheduler/staleness/staleness_rule.hpp"

#include "orchestrator/scheduler/staleness/aggregate.hpp"
#include "orchestrator/scheduler/staleness/count.hpp"
#include "orchestrator/scheduler/staleness/drop.hpp"
#include "orchestrator/scheduler/staleness/exact.hpp"
#include "orchestrator/scheduler/staleness/in_order.hpp"
#include "orchestrator/scheduler/staleness/wait.hpp"
#include "orchestrator/scheduler/staleness/window.hpp"

namespace temper::orchestrator {

bool StalenessRule::may_train(const GroupsByVersion& ready, const OutstandingGroups& s) const {
  std::int64_t sum = 0;
  for (const auto& [v0, groups] : ready)
    sum += groups;
  return sum >= s.wanted();
}

std::optional<std::vector<GroupId>> StalenessRule::select(const DistQueue& queue,
                                                          const OutstandingGroups& s) const {
  const auto size = static_cast<std::size_t>(s.wanted());
  if (queue.trainable().size() < size || !may_train(queue.trainable_by_version(), s))
    return std::nullopt;
  std::vector<GroupId> groups;
  groups.reserve(size);
  for (auto it = queue.trainable().begin(); groups.size() < size; ++it)
    groups.push_back(it->second);
  return groups;
}

std::int64_t StalenessRule::may_promise(const GroupsByVersion&, const OutstandingGroups&) const {
  return 0;
}

std::vector<GroupId> StalenessRule::evict(const DistQueue&, const OutstandingGroups&) const {
  return {};
}

std::vector<GroupId> StalenessRule::trainable_older_than(double most,
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

std::unique_ptr<StalenessRule> make_staleness_rule(StalenessRuleKind rule) {
  switch (rule) {
    case StalenessRuleKind::Exact:
    case StalenessRuleKind::Sync:
      return std::make_unique<ExactRule>();
    case StalenessRuleKind::Aggregate:
      return std::make_unique<AggregateRule>();
    case StalenessRuleKind::Count:
      return std::make_unique<CountRule>();
    case StalenessRuleKind::Drop:
      return std::make_unique<DropRule>();
    case StalenessRuleKind::Wait:
      return std::make_unique<WaitRule>();
    case StalenessRuleKind::Window:
      return std::make_unique<WindowRule>();
    case StalenessRuleKind::InOrder:
      return std::make_unique<InOrderRule>();
  }
  return std::make_unique<ExactRule>();
}

}  // namespace temper::orchestrator
