#include "orchestrator/scheduler/sharing/one_by_one.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// It pays to spread the trainer over more cards while at least one in so many groups of a batch is
/// left to train.
constexpr std::int64_t kWorthSpreading = 8;
/// A batch is scored and trained in so many parts. Smaller ones cost more switches between scoring
/// and training, larger ones delay a better share of the cards.
constexpr std::int64_t kParts = 8;
/// Work for a while: this part of a batch.
constexpr double kMuch = 0.25;

CardShares::Room room_of(const RunState& run) {
  CardShares::Room room;
  for (const ActorId id : run.fleet.turning_engines())
    room.slots = std::max<std::int64_t>(room.slots, run.fleet.spec(id).concurrency);
  room.crowded = run.config.crowding * static_cast<double>(room.slots);
  if (run.config.kv_slots > 0)
    room.slots = std::min(room.slots, run.config.kv_slots);
  return room;
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
/// scores in any case.
std::int64_t may_promise_once_scored(const RunState& run) {
  return may_promise(run,
                     run.fleet.turning_references().empty() ? run.saved.queue.trainable_by_version()
                                                            : run.saved.queue.judged_by_version());
}

/// A part can be trained before its batch is complete.
bool part_is_ready(const RunState& run) {
  return run.config.stragglers.prepare &&
         may_promise(run, run.saved.queue.trainable_by_version()) >= run.least_to_prepare();
}

/// The same, or it lacks nothing but scores.
bool part_is_judged(const RunState& run) {
  return run.config.stragglers.prepare && may_promise_once_scored(run) >= run.least_to_prepare();
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
    : shares_(run.config.shares, run.config.parts, room_of(run)) {}

std::optional<std::int64_t> OneByOne::part_size(const RunState& run, std::int32_t share) const {
  return std::max(shares_.part(share),
                  std::max<std::int64_t>(1, run.config.groups_per_update / kParts));
}

/// For parts of a batch, of which there is at least one; 0: the others can do without none.
std::int32_t OneByOne::share_for_parts(const RunState& run) const {
  const auto engines = std::ssize(run.fleet.turning_engines());
  const std::int64_t responses = responses_to_generate(run);
  const std::int64_t groups = may_promise_once_scored(run);
  if (const std::int32_t some = shares_.spare(engines, responses, groups); some > 0)
    return some;
  const bool much = static_cast<double>(groups) >= kMuch * run.config.groups_per_update;
  return much ? shares_.smallest_with_room(engines, responses) : 0;
}

/// The engines that stay cannot do without this share now. The smallest stays as long as there is
/// work for it and their slots suffice.
bool OneByOne::are_crowded_without(const RunState& run, std::int32_t share) const {
  const auto engines = std::ssize(run.fleet.turning_engines());
  const std::int64_t responses = responses_to_generate(run);
  if (shares_.fits(share, engines, responses))
    return false;
  return !part_is_judged(run) || share > shares_.smallest_with_room(engines, responses);
}

/// Engines whose cards scoring and training should have now; 0: there is no work for them, or
/// generation needs all.
std::int32_t OneByOne::share_due(const RunState& run) const {
  if (run.select_batch() || run.scoring_makes_a_batch())
    return shares_.pressing(std::ssize(run.fleet.turning_engines()), responses_to_generate(run));
  return part_is_judged(run) ? share_for_parts(run) : 0;
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
      return choose_in_scoring(run, roles);
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
  const auto held = static_cast<std::int32_t>(std::ssize(roles.leaving()));
  if (are_crowded_without(run, held) && !run.scoring_makes_a_batch())
    return roles.request_rollout();
  if (part_is_ready(run))
    return;
  if (scores_before_more(run))
    return roles.request_scoring();
  // A trainer without work keeps its cards for what comes next.
  if (run.responses_in_flight() == 0)
    return roles.request_rollout();
}

/// A turn of scoring also ends between two parts: once one can be trained, or more cards can be
/// had, which the trainer spreads to.
void OneByOne::choose_in_scoring(const RunState& run, RoleSwitch& roles) const {
  if (references_are_busy(run))
    return;
  const bool more = share_due(run) > std::ssize(roles.leaving()) && worth_spreading(run);
  if (more || part_is_ready(run))
    return roles.scored();
  end_scoring_if_done(run, roles);
}

}  // namespace temper::orchestrator
