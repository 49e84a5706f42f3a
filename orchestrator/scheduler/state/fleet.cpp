#include "orchestrator/scheduler/state/fleet.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// The deadlines that an actor is under.
template <class F>
void for_each_deadline(ActorId id, const ActorState& a, F&& f) {
  using K = DeadlineKind;
  if (a.life == Life::Launching)
    f(a.launch_deadline, Overdue{id, K::Start});
  if (a.life != Life::Ready)
    return;
  if (a.staging) {
    f(a.weights_deadline,
      Overdue{id, a.committing ? K::CommitWeights : K::StageWeights, *a.staging});
  }
  if (a.switching)
    f(a.switch_deadline, Overdue{id, K::Switch, std::nullopt, *a.switching});
}

}  // namespace

void Fleet::take(const std::vector<ActorSpec>& specs) {
  specs_ = specs;
  states_.resize(specs.size());
  by_role_ = {};
  turning_engines_.clear();
  turning_references_.clear();
  removed_.clear();
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    if (specs[i].away) {
      removed_.emplace_back(i);
      continue;
    }
    by_role_[static_cast<std::size_t>(specs[i].role)].emplace_back(i);
    if (specs[i].takes_turns && specs[i].role == actors::RoleKind::Rollout)
      turning_engines_.emplace_back(i);
    if (specs[i].takes_turns && specs[i].role == actors::RoleKind::Reference)
      turning_references_.emplace_back(i);
  }
}

void Fleet::renew(ActorId id, Life life) {
  ActorState& a = change(id);
  ActorState renewed;
  renewed.life = life;
  renewed.restarts = a.restarts;
  renewed.late_starts = a.late_starts;
  renewed.first_lease = a.first_lease;
  renewed.busy_until = a.busy_until;
  renewed.waiting = a.waiting;
  a = renewed;
}

/// A worker that others start costs this machine nothing.
bool Fleet::may_start(std::uint32_t actor) const {
  if (starts_at_once_ == 0 || specs_[actor].attached)
    return true;
  std::int32_t starting = 0;
  for (const std::uint32_t i : watched_)
    starting += states_[i].life == Life::Launching && !specs_[i].attached ? 1 : 0;
  return starting < starts_at_once_;
}

std::optional<ActorId> Fleet::next_to_start(Time now) const {
  std::optional<ActorId> first;
  for (const std::uint32_t i : watched_) {
    const ActorState& a = states_[i];
    if (a.life == Life::Waiting && a.launch_at <= now && may_start(i) &&
        (!first || a.launch_at < state(*first).launch_at))
      first = ActorId(i);
  }
  return first;
}

std::optional<Time> Fleet::next_deadline() const {
  std::optional<Time> earliest;
  const auto consider = [&](Time t) { earliest = earliest ? std::min(*earliest, t) : t; };
  for (const std::uint32_t i : watched_) {
    const ActorState& a = states_[i];
    for_each_deadline(ActorId(i), a, [&](Time t, const Overdue&) { consider(t); });
    if (a.life == Life::Waiting && may_start(i))
      consider(a.launch_at);
  }
  return earliest;
}

std::optional<Overdue> Fleet::overdue(Time now) {
  std::erase_if(watched_, [&](std::uint32_t i) {
    bool pending = states_[i].life == Life::Waiting;
    for_each_deadline(ActorId(i), states_[i], [&](Time, const Overdue&) { pending = true; });
    return !pending;
  });
  std::optional<Overdue> found;
  for (const std::uint32_t i : watched_) {
    for_each_deadline(ActorId(i), states_[i], [&](Time t, const Overdue& missed) {
      if (t <= now && !found)
        found = missed;
    });
  }
  return found;
}

}  // namespace temper::orchestrator
