// Why actors are idle.
#include "orchestrator/scheduler/scheduler.hpp"

namespace temper::orchestrator {

void Scheduler::update_waits() {
  if (finished_)
    return;
  for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
    ActorState& a = fleet_.state(ActorId(i));
    const command::Waiting wait = wait_of(ActorId(i));
    // Counts and groups change with every response, and steps of a role switch follow each other:
    // only the first of a wait is told. Another kind of cause is another wait.
    if (wait.state == a.waiting.state &&
        (wait.state == actors::CardState::Switch || wait.cause.kind == a.waiting.cause.kind))
      continue;
    a.waiting = wait;
    emit(wait);
  }
}

command::Waiting Scheduler::wait_of(ActorId id) const {
  using S = actors::CardState;
  using K = WaitKind;
  const ActorState& a = fleet_.state(id);
  const Load load = load_of(id);
  const auto because = [id](S state, const WaitCause& cause) {
    return command::Waiting{id, state, cause};
  };
  if (fleet_.spec(id).away)
    return because(a.ready() ? S::Idle : S::Down, {K::Removed});
  if (a.life == Life::Waiting)
    return because(S::Down, {a.launch_at > now_ ? K::RestartPause : K::StartSlot});
  if (!a.ready())
    return because(S::Down, {K::Start});
  if (a.switching)
    return because(S::Switch, {.kind = K::RoleSwitch, .action = a.switching});
  switch (fleet_.spec(id).role) {
    case actors::RoleKind::Trainer:
      if (training_ || preparing_)
        return because(S::Idle, {K::Work});
      if (saving_)
        return because(S::WeightSync, {K::Checkpoint});
      if (draining())
        return because(S::Idle, {evaluation_.under_way() ? K::Evaluation : K::EndOfRun});
      if (evaluation_holds_up_training())
        return because(S::WaitData, {.kind = K::Evaluation, .version = evaluation_.version()});
      if (a.waiting.state == S::WaitData && a.waiting.cause.kind != K::Evaluation)
        return a.waiting;
      return because(S::WaitData, missing_for_training());
    case actors::RoleKind::Rollout:
      if (load.responses > 0)
        return because(S::Idle, {K::Work});
      if (groups_still_needed() == 0 || draining())
        return because(S::Idle, {K::EndOfRun});
      if (fleet_.spec(id).takes_turns && switch_.phase() != SwitchPhase::Rollout &&
          switch_.has_left(id))
        return because(S::Switch, {.kind = K::RoleSwitch, .phase = switch_.phase()});
      if (!a.version || a.staging)
        return because(S::WaitWeights, {K::Weights});
      return because(S::WaitQuota, {held_until_ ? K::TrainerDemand : K::StalenessBound});
    case actors::RoleKind::Reference:
      if (load.leases > 0)
        return because(S::Idle, {K::Work});
      if (!stored_.queue.ready(Task::Reference).empty() && !may_score(id))
        return because(S::WaitData, {K::SharedCards});
      return because(S::WaitData, {K::Responses});
    case actors::RoleKind::Reward:
      return because(load.leases > 0 ? S::Idle : S::WaitData,
                     {load.leases > 0 ? K::Work : K::Responses});
  }
  return because(S::Idle, {K::Work});
}

/// What the next update waits for.
WaitCause Scheduler::missing_for_training() const {
  // Groups of the next update that are ready, or whose gradients were asked for.
  const std::int64_t ready = std::ssize(stored_.queue.trainable()) + stored_.standing.prepared;
  WaitCause cause{.ready = static_cast<std::uint64_t>(ready),
                  .needed = static_cast<std::uint64_t>(config_.groups_per_update)};
  // The earliest deadline that is not ready; by the exact rule it is always among those needed.
  for (const auto& [id, group] : stored_.queue.groups()) {
    if (group.trainable || stored_.queue.in_training(id))
      continue;
    cause.kind = WaitKind::Groups;
    cause.group = id;
    cause.version = group.dispatched;
    return cause;
  }
  cause.kind = cause.ready < cause.needed ? WaitKind::Dispatch : WaitKind::RoleSwitch;
  return cause;
}

}  // namespace temper::orchestrator
