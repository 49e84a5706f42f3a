#include "orchestrator/scheduler/view/waits.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// What the next step waits for.
WaitCause missing_for_training(const RunState& run) {
  // Groups of the next update that are ready, or whose gradients were asked for.
  const std::int64_t ready =
      std::ssize(run.saved.queue.trainable()) + run.saved.outstanding.prepared;
  WaitCause cause{.ready = static_cast<std::uint64_t>(ready),
                  .needed = static_cast<std::uint64_t>(run.config.groups_per_update)};
  // The earliest deadline that is not ready; by the exact rule it is always among those needed.
  for (const auto& [id, group] : run.saved.queue.groups()) {
    if (group.trainable || run.saved.queue.in_training(id))
      continue;
    cause.kind = WaitKind::Groups;
    cause.group = id;
    cause.version = group.dispatched;
    return cause;
  }
  cause.kind = cause.ready < cause.needed ? WaitKind::Dispatch : WaitKind::RoleSwitch;
  return cause;
}

/// What a reference without responses waits for: while none is being generated, what keeps the
/// engines from it.
command::Waiting missing_for_scoring(const RunState& run,
                                     const CardSharing& sharing,
                                     std::optional<Time> held_until,
                                     ActorId id) {
  using S = actors::CardState;
  using K = WaitKind;
  if (run.responses_in_flight() > 0)
    return {id, S::WaitData, {K::Responses}};
  if (run.groups_still_needed() == 0 || run.draining())
    return {id, S::Idle, {K::EndOfRun}};
  if (run.saved.queue.ready(Task::Generate).empty() && !run.can_admit())
    return {id, S::WaitQuota, {held_until ? K::TrainerDemand : K::StalenessBound}};
  const bool away = std::ranges::any_of(run.fleet.turning_engines(),
                                        [&](ActorId engine) { return sharing.has_left(engine); });
  return {id, S::WaitData, {away ? K::SharedCards : K::Responses}};
}

command::Waiting wait_of(const RunState& run,
                         const CardSharing& sharing,
                         std::optional<Time> held_until,
                         ActorId id) {
  using S = actors::CardState;
  using K = WaitKind;
  const ActorState& a = run.fleet.state(id);
  const Load load = run.load_of(id);
  const auto because = [id](S state, const WaitCause& cause) {
    return command::Waiting{id, state, cause};
  };
  if (run.fleet.spec(id).away)
    return because(a.ready() ? S::Idle : S::Down, {K::Removed});
  if (a.life == Life::Waiting)
    return because(S::Down, {a.launch_at > run.now ? K::RestartPause : K::StartSlot});
  if (!a.ready())
    return because(S::Down, {K::Start});
  if (a.switching)
    return because(S::Switch, {.kind = K::RoleSwitch, .action = a.switching});
  switch (run.fleet.spec(id).role) {
    case actors::RoleKind::Trainer:
      if (run.trainer.training || run.trainer.preparing)
        return because(S::Idle, {K::Work});
      if (run.trainer.saving)
        return because(S::WeightSync, {K::Checkpoint});
      if (run.draining())
        return because(S::Idle, {run.evaluation.under_way() ? K::Evaluation : K::EndOfRun});
      if (run.evaluation_holds_up_training())
        return because(S::WaitData, {.kind = K::Evaluation, .version = run.evaluation.version()});
      if (a.waiting.state == S::WaitData && a.waiting.cause.kind != K::Evaluation)
        return a.waiting;
      return because(S::WaitData, missing_for_training(run));
    case actors::RoleKind::Rollout:
      if (load.responses > 0)
        return because(S::Idle, {K::Work});
      if (run.groups_still_needed() == 0 || run.draining())
        return because(S::Idle, {K::EndOfRun});
      if (run.fleet.spec(id).takes_turns && sharing.phase() != SwitchPhase::Rollout &&
          sharing.has_left(id))
        return because(S::Switch, {.kind = K::RoleSwitch, .phase = sharing.phase()});
      if (!a.version || a.staging)
        return because(S::WaitWeights, {K::Weights});
      return because(S::WaitQuota, {held_until ? K::TrainerDemand : K::StalenessBound});
    case actors::RoleKind::Reference:
      if (load.leases > 0)
        return because(S::Idle, {K::Work});
      if (!run.saved.queue.ready(Task::Reference).empty() && !sharing.may_score(run, id))
        return because(S::WaitData, {K::SharedCards});
      return missing_for_scoring(run, sharing, held_until, id);
    case actors::RoleKind::Reward:
      return because(load.leases > 0 ? S::Idle : S::WaitData,
                     {load.leases > 0 ? K::Work : K::Responses});
  }
  return because(S::Idle, {K::Work});
}

}  // namespace

void report_waits(RunState& run, const CardSharing& sharing, std::optional<Time> held_until) {
  if (run.finished)
    return;
  for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
    ActorState& a = run.fleet.state(ActorId(i));
    const command::Waiting wait = wait_of(run, sharing, held_until, ActorId(i));
    // Counts and groups change with every response, and steps of a role switch follow each other:
    // only the first of a wait is told. Another kind of cause is another wait.
    if (wait.state == a.waiting.state &&
        (wait.state == actors::CardState::Switch || wait.cause.kind == a.waiting.cause.kind))
      continue;
    a.waiting = wait;
    run.emit(wait);
  }
}

}  // namespace temper::orchestrator
