#include "orchestrator/scheduler/sharing/lending.hpp"

#include <algorithm>

namespace temper::orchestrator {

namespace {

/// Nothing generates on lent cards, and nothing is on its way to them.
bool lent_cards_idle(const RunState& run) {
  if (!run.withdrawn.empty() || !run.saved.queue.ready(Task::Generate).empty())
    return false;
  return std::ranges::all_of(run.fleet.turning_engines(), [&](ActorId a) {
    return run.fleet.state(a).ready() && run.saved.queue.load(a).responses == 0;
  });
}
/// Responses of each engine if all are equally loaded, rounded up.
std::int64_t fair_load(const RunState& run) {
  std::int64_t engines = 0;
  auto load = static_cast<std::int64_t>(run.saved.queue.ready(Task::Generate).size());
  for (const ActorId id : run.fleet.rollouts()) {
    engines += run.fleet.state(id).ready() ? 1 : 0;
    load += run.saved.queue.load(id).responses;
  }
  return engines == 0 ? load : (load + engines - 1) / engines;
}
/// There is work for a loan: responses that wait for an engine, groups that the rule admits and
/// dispatch does not hold back, or an engine with exclusive cards that has more than an even share
/// of the responses.
bool loan_has_work(const RunState& run) {
  if (!run.saved.queue.ready(Task::Generate).empty() || (run.can_admit() && !run.held_until))
    return true;
  const std::int64_t fair = fair_load(run);
  return std::ranges::any_of(run.fleet.rollouts(), [&](ActorId id) {
    return !run.fleet.spec(id).takes_turns && run.saved.queue.load(id).responses > fair;
  });
}
/// Engines with exclusive cards hand over requests until all engines are equally loaded.
void spread_load(RunState& run) {
  const std::int64_t fair = fair_load(run);
  for (const ActorId id : run.fleet.rollouts()) {
    const std::int64_t over = run.saved.queue.load(id).responses - fair;
    if (run.fleet.spec(id).takes_turns || over <= 0)
      continue;
    std::vector<ResponseId> theirs = run.saved.queue.generating(id);
    theirs.erase(theirs.begin(), theirs.end() - static_cast<std::ptrdiff_t>(over));
    run.withdraw(id, std::move(theirs));
  }
}
}  // namespace

Lending::Lending(const RunState& run)
    : loans_(run.fleet.rollouts().size() - run.fleet.turning_engines().size(),
             run.fleet.turning_engines().size(),
             std::int64_t{run.config.groups_per_update} * run.config.responses_per_group) {}

void Lending::phase_begins(RunState& run, SwitchPhase phase) {
  if (phase == SwitchPhase::Rollout) {
    loans_.arrives(run.now);
    spread_load(run);
  }
  if (phase == SwitchPhase::Train)
    loans_.returns(run.now);
}

bool Lending::rollout_is_due(const RunState& run) const {
  if (!loan_has_work(run))
    return false;
  // Groups that the next step lacks: of a batch, and of those that it must contain.
  const auto demand = run.rule->demand(run.saved.outstanding);
  std::int64_t lacking = run.config.groups_per_update, due = demand ? demand->groups : 0;
  for (const auto& [v0, groups] : run.saved.queue.judged_by_version()) {
    lacking -= groups;
    due -= demand && v0 <= demand->newest ? groups : 0;
  }
  const std::int64_t to_generate =
      std::ssize(run.saved.queue.ready(Task::Generate)) + run.responses_in_flight();
  const std::int64_t groups = std::max({std::int64_t{0}, lacking, due});
  const std::int64_t remaining = std::min(groups * run.config.responses_per_group, to_generate);
  return run.config.lending == LendingRule::Always ? remaining > 0 : loans_.pays(remaining);
}

bool Lending::training_is_due(const RunState& run) const {
  return run.select_batch().has_value() || lent_cards_idle(run);
}

}  // namespace temper::orchestrator
