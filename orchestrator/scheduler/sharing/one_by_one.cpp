#include "orchestrator/scheduler/sharing/one_by_one.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// It pays to spread the trainer over more cards while at least one in so many groups of a batch is
/// left to train.
constexpr std::int64_t kWorthSpreading = 8;

std::int64_t most_slots(const Fleet& fleet) {
  std::int64_t slots = 1;
  for (const ActorId id : fleet.turning_engines())
    slots = std::max<std::int64_t>(slots, fleet.spec(id).concurrency);
  return slots;
}

/// In flight, returned, and of groups that may be dispatched at once.
std::int64_t responses_to_generate(const RunState& run) {
  std::int64_t responses =
      std::ssize(run.saved.queue.ready(Task::Generate)) + run.responses_in_flight();
  if (run.can_admit()) {
    responses += static_cast<std::int64_t>(run.groups_to_admit()) * run.config.responses_per_group;
  }
  return responses;
}

/// Groups that may be promised to the next step.
std::int64_t may_promise(const RunState& run, const GroupsByVersion& groups) {
  return run.rule->may_promise(groups, run.saved.outstanding);
}

/// The same, once these cards have scored what only they can score. A reference on other cards
/// scores whoever has these.
std::int64_t may_promise_once_scored(const RunState& run) {
  return may_promise(run,
                     run.fleet.turning_references().empty() ? run.saved.queue.trainable_by_version()
                                                            : run.saved.queue.judged_by_version());
}

/// Groups that lack nothing but scores make a batch, or a part that is worth preparing.
bool scores_before_more(const RunState& run) {
  if (!run.waits_for_scores())
    return false;
  const std::int64_t there = may_promise(run, run.saved.queue.trainable_by_version());
  return run.scoring_makes_a_batch() ||
         (run.config.stragglers.prepare &&
          may_promise_once_scored(run) - there >= run.least_to_prepare());
}

/// Much of the step is left to compute.
bool worth_spreading(const RunState& run) {
  return !run.select_batch() || std::int64_t{run.saved.outstanding.wanted()} * kWorthSpreading >=
                                    run.config.groups_per_update;
}

/// Those that have left, then those with the fewest responses.
std::vector<ActorId> engines_to_leave(const RunState& run,
                                      const RoleSwitch& roles,
                                      std::int32_t share) {
  std::vector<CardShares::Engine> engines;
  for (const ActorId id : run.fleet.turning_engines()) {
    engines.push_back(
        {id, run.saved.queue.load(id).responses, run.fleet.state(id).version, roles.has_left(id)});
  }
  return CardShares::emptiest(std::move(engines), share);
}

}  // namespace

OneByOne::OneByOne(const RunState& run)
    : shares_(run.config.shares, run.config.crowding, most_slots(run.fleet)) {}

/// The smallest share that the others can do without; 0: none. Parts of a batch come one by one, as
/// responses end, and more cards would only wait for them.
std::int32_t OneByOne::share_for_parts(const RunState& run) const {
  const auto engines = std::ssize(run.fleet.turning_engines());
  const std::int64_t responses = responses_to_generate(run);
  const auto least = std::ranges::find_if(run.config.shares, [&](std::int32_t share) {
    return shares_.fits(share, engines, responses);
  });
  return least == run.config.shares.end() ? 0 : *least;
}

/// Engines whose cards scoring and training should have now; 0: there is no work for them, or
/// generation needs all.
std::int32_t OneByOne::share_due(const RunState& run) const {
  const bool batch = run.select_batch() || run.scoring_makes_a_batch();
  const bool part =
      run.config.stragglers.prepare && may_promise_once_scored(run) >= run.least_to_prepare();
  if (!batch && !part)
    return 0;
  return batch
             ? shares_.pressing(std::ssize(run.fleet.turning_engines()), responses_to_generate(run))
             : share_for_parts(run);
}

void OneByOne::choose_turn(const RunState& run, RoleSwitch& roles) {
  using Scoring = RoleSwitch::Scoring;
  switch (roles.phase()) {
    case SwitchPhase::Train:
      return choose_in_training(run, roles);
    case SwitchPhase::Rollout:
      if (const std::int32_t share = share_due(run); share > 0)
        roles.request_training(run.waits_for_scores() ? Scoring::Needed : Scoring::None,
                               engines_to_leave(run, roles, share));
      return;
    case SwitchPhase::Score:
      return end_scoring_if_done(run, roles);
    default:
      return;
  }
}

void OneByOne::choose_in_training(const RunState& run, RoleSwitch& roles) const {
  using Scoring = RoleSwitch::Scoring;
  if (run.trainer.training || run.trainer.preparing || run.trainer.saving)
    return;
  if (const std::int32_t share = share_due(run);
      share > std::ssize(roles.leaving()) && worth_spreading(run))
    return roles.request_training(Scoring::None, engines_to_leave(run, roles, share));
  if (run.select_batch())
    return;
  // The engines that stayed cannot do without these cards now, or without so many for parts of a
  // batch. Otherwise a trainer without work keeps its cards for what comes next.
  const bool crowded = std::ssize(roles.leaving()) > share_for_parts(run);
  if (crowded && !run.scoring_makes_a_batch())
    return roles.request_rollout();
  if (scores_before_more(run))
    return roles.request_scoring();
  const std::int64_t there = may_promise(run, run.saved.queue.trainable_by_version());
  if (run.config.stragglers.prepare && there >= run.least_to_prepare())
    return;
  if (run.responses_in_flight() == 0)
    return roles.request_rollout();
}

}  // namespace temper::orchestrator
