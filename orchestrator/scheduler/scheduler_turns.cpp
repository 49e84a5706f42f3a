// The scheduler's part in role switches: whose turn it is on shared cards, and what moves with it.
#include "orchestrator/scheduler/scheduler.hpp"

#include <algorithm>

namespace temper::orchestrator {

void Scheduler::drive_switch() {
  if (finished_)
    return;
  const SwitchPhase before = switch_.phase();
  const bool goes_on = !draining() || evaluation_has_the_cards();
  if (goes_on)
    one_by_one() ? change_shares() : change_turns();
  advance_switch();
  // A trainer that has just come to its cards spreads over more before it begins, not after.
  if (goes_on && one_by_one() && !finished_ && before != SwitchPhase::Train &&
      switch_.phase() == SwitchPhase::Train) {
    change_shares();
    advance_switch();
  }
}

/// Whose turn it is on shared cards.
void Scheduler::change_turns() {
  using Scoring = RoleSwitch::Scoring;
  switch (switch_.phase()) {
    case SwitchPhase::Train:
      if (training_ || saving_ || !prepared_.empty())
        return;
      if (evaluation_has_the_cards())
        return switch_.request_rollout();
      if (select_batch())
        return;
      if (scoring_makes_a_batch())
        return switch_.request_scoring();
      if (!rollout_is_due())
        return;
      lending_.leaves(now_);
      return switch_.request_rollout();
    case SwitchPhase::Rollout: {
      if (!training_is_due())
        return;
      lending_.recalled(now_);
      return switch_.request_training(waits_for_scores() ? Scoring::Needed : Scoring::None,
                                      fleet_.turning_engines());
    }
    case SwitchPhase::Score:
      return score_turn();
    default:
      return;
  }
}

/// It ends when nothing is left to score, and no reference that came late is still on its way to
/// the cards.
void Scheduler::score_turn() {
  const bool busy = std::ranges::any_of(fleet_.turning_references(), [this](ActorId a) {
    return stored_.queue.load(a).leases > 0 || fleet_.state(a).switching;
  });
  if (!busy && stored_.queue.ready(Task::Reference).empty())
    switch_.scored();
}

void Scheduler::advance_switch() {
  const SwitchPhase before = switch_.phase();
  const Status status = switch_.advance(
      fleet_, stored_.progress.version, [this](ActorId a, actors::SwitchAction action) {
        fleet_.state(a).switching = action;
        fleet_.state(a).switch_deadline = now_ + config_.deadlines.switching;
        const bool onloads = action == actors::SwitchAction::OnloadOptimizer;
        emit(command::Switch{
            a, action, one_by_one() && onloads ? switch_.leaving() : std::vector<ActorId>{}});
      });
  if (!status)
    return finish(Ending::Failed,
                  reason_with(ReasonKind::OptimizerRefused, status.error().context));
  if (switch_.phase() == before)
    return;
  if (switch_.phase() == SwitchPhase::Rollout) {
    lending_.arrives(now_);
    spread_load();
  }
  if (switch_.phase() == SwitchPhase::Train)
    lending_.returns(now_);
}

/// With nothing to train, shared cards generate: always where no other cards do, else if it pays.
bool Scheduler::rollout_is_due() const {
  if (!fleet_.lends())
    return true;
  // Groups that the next update lacks: of a batch, and of those that it has to hold.
  const auto demand = policy_->demand(stored_.standing);
  std::int64_t lacking = config_.groups_per_update, due = demand ? demand->groups : 0;
  for (const auto& [v0, groups] : stored_.queue.judged_by_version()) {
    lacking -= groups;
    due -= demand && v0 <= demand->newest ? groups : 0;
  }
  auto to_generate = static_cast<std::int64_t>(stored_.queue.ready(Task::Generate).size());
  for (const ActorId id : fleet_.rollouts())
    to_generate += stored_.queue.load(id).responses;
  const std::int64_t groups = std::max({std::int64_t{0}, lacking, due});
  const std::int64_t remaining = std::min(groups * config_.responses_per_group, to_generate);
  return config_.lending == LendingRule::Always ? remaining > 0 : lending_.pays(remaining);
}

bool Scheduler::training_is_due() const {
  if (fleet_.lends())
    return select_batch().has_value() || lent_cards_idle();
  return rollout_has_run_dry() && (select_batch() || scoring_makes_a_batch());
}

/// Nothing generates on lent cards, and nothing is on its way to them.
bool Scheduler::lent_cards_idle() const {
  if (!withdrawn_.empty() || !stored_.queue.ready(Task::Generate).empty())
    return false;
  return std::ranges::all_of(fleet_.turning_engines(), [this](ActorId a) {
    return fleet_.state(a).ready() && stored_.queue.load(a).responses == 0;
  });
}

/// Cards have just been lent: the engines that had the work give up what makes all equally full,
/// their youngest responses first, which lose the least.
void Scheduler::spread_load() {
  if (!fleet_.lends())
    return;
  std::int64_t engines = 0;
  auto load = static_cast<std::int64_t>(stored_.queue.ready(Task::Generate).size());
  for (const ActorId id : fleet_.rollouts()) {
    engines += fleet_.state(id).ready() ? 1 : 0;
    load += stored_.queue.load(id).responses;
  }
  if (engines == 0)
    return;
  const std::int64_t fair = (load + engines - 1) / engines;
  for (const ActorId id : fleet_.rollouts()) {
    const std::int64_t over = stored_.queue.load(id).responses - fair;
    if (fleet_.spec(id).takes_turns || over <= 0)
      continue;
    std::vector<ResponseId> theirs = stored_.queue.generating(id);
    theirs.erase(theirs.begin(), theirs.end() - static_cast<std::ptrdiff_t>(over));
    withdrawn_.insert(theirs.begin(), theirs.end());
    emit(command::Withdraw{id, std::move(theirs)});
  }
}

/// References that take turns come to the cards one by one, also those that start meanwhile.
void Scheduler::call_references() {
  if (finished_ || !switch_.allows_reference())
    return;
  for (const ActorId id : fleet_.turning_references()) {
    ActorState& a = fleet_.state(id);
    if (!a.ready() || a.onboard || a.switching)
      continue;
    a.switching = actors::SwitchAction::OnloadReference;
    a.switch_deadline = now_ + config_.deadlines.switching;
    emit(command::Switch{id,
                         actors::SwitchAction::OnloadReference,
                         one_by_one() ? switch_.leaving() : std::vector<ActorId>{}});
  }
}

/// Cards on which every engine takes turns leave rollout when nothing new may be dispatched and
/// only a tail is generating.
bool Scheduler::rollout_has_run_dry() const {
  if (evaluation_has_the_cards())
    return false;
  if (can_admit() || !stored_.queue.ready(Task::Generate).empty())
    return false;
  std::int32_t in_flight = 0, slots = 0;
  for (const ActorId id : fleet_.rollouts()) {
    in_flight += stored_.queue.load(id).responses;
    slots += fleet_.spec(id).concurrency;
  }
  return in_flight <= config_.return_share * slots;
}

}  // namespace temper::orchestrator
