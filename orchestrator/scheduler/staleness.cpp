#include "orchestrator/scheduler/staleness.hpp"

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Room that (I) leaves up to and including deadline `d` when version `step` is being updated.
std::int64_t room(PolicyVersion d, PolicyVersion step, std::int32_t batch) {
  if (d < step)
    return 0;
  return static_cast<std::int64_t>(d.value() - step.value() + 1) * batch;
}

}  // namespace

bool ExactRule::admits(PolicyVersion engine, PolicyVersion step) const {
  const PolicyVersion added = deadline_of(engine);
  if (added < step)
    return false;
  // Groups in training count at `step`: those with a later deadline are moved forward.
  const auto moved_before = [this](PolicyVersion d) {
    return in_training_.end() - std::upper_bound(in_training_.begin(), in_training_.end(), d);
  };
  std::int64_t count = 1;  // the group that asks
  auto it = outstanding_.begin();
  for (; it != outstanding_.end() && it->first <= added; ++it)
    count += it->second;
  if (count + moved_before(added) > room(added, step, batch_))
    return false;
  for (; it != outstanding_.end(); ++it) {
    count += it->second;
    if (count + moved_before(it->first) > room(it->first, step, batch_))
      return false;
  }
  return true;
}

bool ExactRule::may_train(std::span<const PolicyVersion> deadlines, PolicyVersion step) const {
  return !binding_deadline(deadlines, step).has_value();
}

std::optional<PolicyVersion> ExactRule::binding_deadline(std::span<const PolicyVersion> deadlines,
                                                         PolicyVersion step) const {
  std::map<PolicyVersion, std::int64_t> leaving;
  for (const PolicyVersion d : deadlines)
    ++leaving[d];
  return binding_deadline(leaving, step);
}

std::optional<PolicyVersion> ExactRule::binding_deadline(
    const std::map<PolicyVersion, std::int64_t>& leaving, PolicyVersion step) const {
  std::optional<PolicyVersion> binding;
  std::int64_t count = 0;
  for (const auto& [deadline, groups] : outstanding_) {
    count += groups;
    if (const auto it = leaving.find(deadline); it != leaving.end())
      count -= it->second;
    if (count > room(deadline, next(step), batch_))
      binding = deadline;
  }
  return binding;
}

void ExactRule::remove(PolicyVersion deadline) {
  const auto it = outstanding_.find(deadline);
  TEMPER_CHECK(it != outstanding_.end(), "a group leaves that was never added");
  if (--it->second == 0)
    outstanding_.erase(it);
}

void ExactRule::begin_update(std::vector<PolicyVersion> deadlines) {
  in_training_ = std::move(deadlines);
  std::sort(in_training_.begin(), in_training_.end());
}

}  // namespace temper::orchestrator
