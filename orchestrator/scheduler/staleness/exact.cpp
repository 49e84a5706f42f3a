#include "orchestrator/scheduler/staleness/exact.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Room that (I) leaves up to and including the deadline of groups of `v0`, when version `step` is
/// being updated.
std::int64_t room(PolicyVersion v0, std::uint64_t eta, PolicyVersion step, std::int32_t batch) {
  const std::uint64_t deadline = v0.value() + eta;
  if (deadline < step.value())
    return 0;
  return static_cast<std::int64_t>(deadline - step.value() + 1) * batch;
}

/// Oldest first, B in all; fewer where there are fewer.
GroupsByVersion oldest(const GroupsByVersion& ready, std::int64_t batch) {
  GroupsByVersion out;
  for (const auto& [v0, groups] : ready) {
    if (batch == 0)
      break;
    const std::int64_t taken = std::min(batch, groups);
    out[v0] = taken;
    batch -= taken;
  }
  return out;
}

}  // namespace

bool ExactRule::admits(PolicyVersion engine, const DistQueue&, const OutstandingGroups& s) const {
  if (engine.value() + eta(s) < s.step.value())
    return false;
  std::int64_t count = 0;
  std::int64_t later_in_training =
      0;  // they leave at `step`, so they count from the first deadline
  for (const auto& [v0, groups] : s.in_training)
    later_in_training += groups;
  bool counted = false;
  const auto fits = [&](PolicyVersion v0) {
    return count + later_in_training <= room(v0, eta(s), s.step, s.batch);
  };
  for (const auto& [v0, groups] : s.outstanding) {
    if (!counted && v0 > engine) {
      ++count;  // the group that asks
      counted = true;
      if (!fits(engine))
        return false;
    }
    count += groups;
    if (const auto it = s.in_training.find(v0); it != s.in_training.end())
      later_in_training -= it->second;
    if (v0 == engine) {
      ++count;
      counted = true;
    }
    if (v0 >= engine && !fits(v0))
      return false;
  }
  if (!counted)
    ++count;
  return counted || fits(engine);
}

bool ExactRule::may_train(const GroupsByVersion& ready, const OutstandingGroups& s) const {
  return StalenessRule::may_train(ready, s) && !binding_version(ready, s).has_value();
}

std::optional<PolicyVersion> ExactRule::binding_version(const GroupsByVersion& ready,
                                                        const OutstandingGroups& s) const {
  const GroupsByVersion leaving = oldest(ready, s.wanted());
  std::optional<PolicyVersion> binding;
  std::int64_t count = 0;
  for (const auto& [v0, groups] : s.outstanding) {
    count += s.waiting(v0);
    if (const auto it = leaving.find(v0); it != leaving.end())
      count -= it->second;
    if (count > room(v0, eta(s), next(s.step), s.batch))
      binding = v0;
  }
  return binding;
}

std::int64_t ExactRule::may_promise(const GroupsByVersion& ready,
                                    const OutstandingGroups& s) const {
  std::int64_t count = 0, later = 0;
  for (const auto& [v0, groups] : s.in_training)
    later += groups;
  // By what earlier deadlines leave room for; one group is left for the update itself.
  std::int64_t left = std::max(0, s.wanted() - 1);
  std::int64_t promised = 0;
  for (const auto& [v0, groups] : s.outstanding) {
    if (const auto there = ready.find(v0); there != ready.end()) {
      const std::int64_t taken = std::min(left, there->second);
      promised += taken;
      left -= taken;
      if (taken < there->second)
        break;
    }
    count += groups;
    if (const auto in = s.in_training.find(v0); in != s.in_training.end())
      later -= in->second;
    // Those of this version and older are in `count`, when ever they are trained; each younger one
    // that is promised takes a place at step t.
    left = std::min(left, room(v0, eta(s), s.step, s.batch) - count - later);
  }
  return promised;
}

std::optional<StalenessRule::Demand> ExactRule::demand(const OutstandingGroups& s) const {
  const PolicyVersion after = next(s.updating ? next(s.step) : s.step);
  std::optional<Demand> out;
  std::int64_t count = 0;
  for (const auto& [v0, groups] : s.outstanding) {
    count += s.waiting(v0);
    const std::int64_t demanded = count - room(v0, eta(s), after, s.batch);
    if (demanded > (out ? out->groups : 0))
      out = Demand{v0, demanded};
  }
  return out;
}

}  // namespace temper::orchestrator
