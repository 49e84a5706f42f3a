#include "orchestrator/scheduler/staleness/outstanding_groups.hpp"

#include "core/check.hpp"

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
  prepared = 0;
  updating = false;
  since_step = 0;
  at_step = outstanding_groups();
}

}  // namespace temper::orchestrator
