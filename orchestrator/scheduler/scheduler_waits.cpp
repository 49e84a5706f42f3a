// Why actors are idle, by name.
#include "orchestrator/scheduler/scheduler.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

void Scheduler::update_waits() {
  if (finished_)
    return;
  for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
    ActorState& a = fleet_.state(ActorId(i));
    command::Waiting wait = wait_of(ActorId(i));
    // What a wait for data is for changes with every response; said once. Idleness and the rule's
    // word have few reasons.
    using S = actors::CardState;
    const bool few = wait.state == S::Idle || wait.state == S::WaitQuota;
    if (wait.state == a.waiting.state && (!few || wait.on == a.waiting.on))
      continue;
    a.waiting = wait;
    emit(std::move(wait));
  }
}

command::Waiting Scheduler::wait_of(ActorId id) const {
  using S = actors::CardState;
  const ActorState& a = fleet_.state(id);
  const Load load = load_of(id);
  const auto because = [id](S state, std::string on) {
    return command::Waiting{id, state, std::move(on)};
  };
  if (fleet_.spec(id).away)
    return because(a.ready() ? S::Idle : S::Down, std::string(command::kTakenAway));
  if (a.life == Life::Waiting)
    return because(S::Down, a.launch_at > now_ ? "pause before a restart" : "room to start");
  if (!a.ready())
    return because(S::Down, "start");
  if (a.switching)
    return because(S::Switch, std::string(name_of(*a.switching)));
  switch (fleet_.spec(id).role) {
    case actors::RoleKind::Trainer:
      if (training_ || preparing_)
        return because(S::Idle, "");
      if (saving_)
        return because(S::WeightSync, "checkpoint");
      if (draining())
        return because(S::Idle, evaluation_.under_way() ? "evaluation" : "end of run");
      if (evaluation_holds_up_training())
        return because(S::WaitData,
                       fmt::format("evaluation of version {}", *evaluation_.version()));
      return because(S::WaitData,
                     a.waiting.state == S::WaitData ? a.waiting.on : missing_for_training());
    case actors::RoleKind::Rollout:
      if (load.responses > 0)
        return because(S::Idle, "");
      if (groups_still_needed() == 0 || draining())
        return because(S::Idle, "end of run");
      if (fleet_.spec(id).takes_turns && switch_.phase() != SwitchPhase::Rollout &&
          switch_.has_left(id))
        return because(S::Switch, std::string(name_of(switch_.phase())));
      if (!a.version || a.staging)
        return because(S::WaitWeights, "weights");
      return because(S::WaitQuota,
                     held_until_ ? std::string(command::kTrainerIsFed) : "staleness bound");
    case actors::RoleKind::Reference:
    case actors::RoleKind::Reward:
      return load.leases > 0 ? because(S::Idle, "") : because(S::WaitData, "responses");
  }
  return because(S::Idle, "");
}

/// The named groups the next update waits for.
std::string Scheduler::missing_for_training() const {
  if (stored_.queue.groups().empty())
    return "responses: none dispatched yet";
  // The earliest deadline that is not ready; by the exact rule it is always among those needed.
  const std::int64_t ready = std::ssize(stored_.queue.trainable()) + stored_.standing.prepared;
  for (const auto& [id, group] : stored_.queue.groups()) {
    if (group.trainable || stored_.queue.in_training(id))
      continue;
    return fmt::format("groups: {} (v0 {}) and others, {} of {} ready",
                       id,
                       group.dispatched,
                       ready,
                       config_.groups_per_update);
  }
  return ready < config_.groups_per_update ? "responses: no more dispatched yet" : "role switch";
}

}  // namespace temper::orchestrator
