#include "orchestrator/scheduler/sharing/together.hpp"

namespace temper::orchestrator {

namespace {

/// Nothing new may be dispatched, and only a few responses still generate.
bool rollout_has_run_dry(const RunState& run) {
  if (run.evaluation_has_the_cards())
    return false;
  if (run.can_admit() || !run.saved.queue.ready(Task::Generate).empty())
    return false;
  std::int32_t in_flight = 0, slots = 0;
  for (const ActorId id : run.fleet.rollouts()) {
    in_flight += run.saved.queue.load(id).responses;
    slots += run.fleet.spec(id).concurrency;
  }
  return in_flight <= run.config.return_share * slots;
}
}  // namespace

void Together::choose_turn(const RunState& run, RoleSwitch& roles) {
  using Scoring = RoleSwitch::Scoring;
  switch (roles.phase()) {
    case SwitchPhase::Train:
      if (run.trainer.training || run.trainer.saving || !run.trainer.prepared.empty())
        return;
      if (run.evaluation_has_the_cards())
        return roles.request_rollout();
      if (run.select_batch())
        return;
      if (run.scoring_makes_a_batch())
        return roles.request_scoring();
      if (!rollout_is_due(run))
        return;
      rollout_requested(run.now);
      return roles.request_rollout();
    case SwitchPhase::Rollout: {
      if (!training_is_due(run))
        return;
      training_requested(run.now);
      return roles.request_training(run.waits_for_scores() ? Scoring::Needed : Scoring::None,
                                    run.fleet.turning_engines());
    }
    case SwitchPhase::Score:
      return end_scoring_if_done(run, roles);
    default:
      return;
  }
}

bool Together::training_is_due(const RunState& run) const {
  return rollout_has_run_dry(run) && (run.select_batch() || run.scoring_makes_a_batch());
}

}  // namespace temper::orchestrator
