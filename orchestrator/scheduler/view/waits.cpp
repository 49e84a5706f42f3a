#include "orchestrator/scheduler/view/waits.hpp"

#include <algorithm>
#include <optional>

namespace temper::orchestrator {
namespace {

/// What the next step waits for. `last`: what the trainer was last said to wait for; it keeps its
/// group for as long as the kind of cause is the same.
WaitCause missing_for_training(const RunState& run, const command::Waiting& last) {
  // Groups of the next update that are ready, or whose gradients were asked for.
  const std::int64_t ready =
      std::ssize(run.saved.queue.trainable()) + run.saved.outstanding.prepared;
  WaitCause cause{.ready = static_cast<std::uint64_t>(ready),
                  .needed = static_cast<std::uint64_t>(run.config.groups_per_update)};
  cause.kind = run.select_batch()                             ? WaitKind::RoleSwitch
               : std::ssize(run.saved.queue.groups()) > ready ? WaitKind::Groups
                                                              : WaitKind::Dispatch;
  if (last.state == actors::CardState::WaitData && last.cause.kind == cause.kind)
    return last.cause;
  if (cause.kind != WaitKind::Groups)
    return cause;
  // The earliest deadline that is not ready; by the exact rule it is always among those needed.
  for (const auto& [id, group] : run.saved.queue.groups()) {
    if (group.trainable || run.saved.queue.in_training(id))
      continue;
    cause.group = id;
    cause.version = group.dispatched;
    break;
  }
  return cause;
}

/// Nothing is left to generate.
bool all_is_generated(const RunState& run) {
  return run.draining() ||
         (run.groups_still_needed() == 0 && run.saved.queue.ready(Task::Generate).empty());
}

/// Also those of an engine that was removed and has not handed them back yet.
bool some_are_generated(const RunState& run) {
  for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
    if (run.fleet.spec(ActorId(i)).role == actors::RoleKind::Rollout &&
        run.saved.queue.load(ActorId(i)).responses > 0)
      return true;
  }
  return false;
}

/// No engine has the published version and its KV cache in place.
bool engines_lack_weights(const RunState& run) {
  return std::ranges::none_of(run.fleet.rollouts(), [&](ActorId id) {
    const ActorState& a = run.fleet.state(id);
    return a.ready() && a.has_kv && !a.switching && !a.staging &&
           a.version == run.saved.progress.version;
  });
}

struct Wait {
  actors::CardState state = actors::CardState::Idle;
  WaitCause cause{};
};

/// What actors of a role that scores wait for without responses: what keeps engines from generating
/// them.
Wait missing_for_scoring(const RunState& run, const CardSharing& sharing, actors::RoleKind role) {
  using S = actors::CardState;
  using K = WaitKind;
  // Of an evaluation, a reference has nothing to score.
  const bool evaluates = role == actors::RoleKind::Reward;
  const bool returned =
      !run.saved.queue.ready(Task::Generate).empty() ||
      (evaluates && run.evaluation_has_the_cards() && run.evaluation.wants_engine());
  const bool away = std::ranges::any_of(run.fleet.turning_engines(),
                                        [&](ActorId engine) { return sharing.has_left(engine); });
  if (returned && away)
    return {S::WaitData, {K::SharedCards}};
  if (some_are_generated(run) || (evaluates && run.evaluation.generates()))
    return {S::WaitData, {K::Responses}};
  if (all_is_generated(run))
    return {S::Idle, {K::EndOfRun}};
  if (!returned && !run.can_admit())
    return {S::WaitQuota, {K::StalenessBound}};
  if (run.held_until)
    return {S::WaitQuota, {K::TrainerDemand}};
  if (away)
    return {S::WaitData, {K::SharedCards}};
  if (engines_lack_weights(run))
    return {S::WaitWeights, {K::Weights}};
  return {S::WaitData, {K::Responses}};
}

/// What an engine without responses waits for.
command::Waiting missing_for_rollout(const RunState& run, const CardSharing& sharing, ActorId id) {
  using S = actors::CardState;
  using K = WaitKind;
  const ActorState& a = run.fleet.state(id);
  if (all_is_generated(run))
    return {id, S::Idle, {K::EndOfRun}};
  if (run.fleet.spec(id).takes_turns && sharing.phase() != SwitchPhase::Rollout &&
      sharing.has_left(id))
    return {id, S::Switch, {.kind = K::RoleSwitch, .phase = sharing.phase()}};
  const bool wanted = !run.saved.queue.ready(Task::Generate).empty() || run.can_admit();
  if (!a.version || a.staging || (wanted && a.version != run.saved.progress.version))
    return {id, S::WaitWeights, {K::Weights}};
  return {id, S::WaitQuota, {run.held_until ? K::TrainerDemand : K::StalenessBound}};
}

/// What scoring actors wait for, found once for all of a role.
class ScoringWaits {
 public:
  ScoringWaits(const RunState& run, const CardSharing& sharing) : run_(run), sharing_(sharing) {}

  const Wait& of(actors::RoleKind role) {
    std::optional<Wait>& wait = role == actors::RoleKind::Reward ? reward_ : reference_;
    if (!wait)
      wait = missing_for_scoring(run_, sharing_, role);
    return *wait;
  }

 private:
  const RunState& run_;
  const CardSharing& sharing_;
  std::optional<Wait> reference_, reward_;
};

command::Waiting wait_of(const RunState& run,
                         const CardSharing& sharing,
                         ActorId id,
                         ScoringWaits& scoring) {
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
      return because(S::WaitData, missing_for_training(run, a.waiting));
    case actors::RoleKind::Rollout:
      if (load.responses > 0)
        return because(S::Idle, {K::Work});
      return missing_for_rollout(run, sharing, id);
    case actors::RoleKind::Reference:
      if (load.leases > 0)
        return because(S::Idle, {K::Work});
      if (!run.saved.queue.ready_for(run.fleet.spec(id).teacher.value_or(0)).empty() &&
          !sharing.may_score(run, id))
        return because(S::WaitData, {K::SharedCards});
      break;
    case actors::RoleKind::Reward:
      if (load.leases > 0)
        return because(S::Idle, {K::Work});
      break;
  }
  const Wait& wait = scoring.of(run.fleet.spec(id).role);
  return because(wait.state, wait.cause);
}

}  // namespace

void report_waits(RunState& run, const CardSharing& sharing) {
  if (run.finished)
    return;
  ScoringWaits scoring(run, sharing);
  for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
    const command::Waiting& last = run.fleet.state(ActorId(i)).waiting;
    const command::Waiting wait = wait_of(run, sharing, ActorId(i), scoring);
    // Counts and groups change with every response, and steps of a role switch follow each other:
    // only the first of a wait is told. Another kind of cause is another wait.
    if (wait.state == last.state &&
        (wait.state == actors::CardState::Switch || wait.cause.kind == last.cause.kind))
      continue;
    run.fleet.change(ActorId(i)).waiting = wait;
    run.emit(wait);
  }
}

}  // namespace temper::orchestrator
