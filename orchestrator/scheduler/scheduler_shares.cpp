// The scheduler's part where shared cards change role engine by engine (placement.switching:
// one_by_one): who gives up its cards, when they come back, and how engines that stayed get new
// weights.
#include "orchestrator/scheduler/scheduler.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// So much of a batch is left to train that it pays to spread the trainer over more cards: one
/// in...
constexpr std::int64_t kWorthSpreading = 8;

/// The smallest share that the others can do without; 0: none. Parts of a batch come one by one, as
/// responses end, and more cards would only wait for them.
std::int32_t share_of_parts(const std::vector<std::int32_t>& shares,
                            const CardShares& rule,
                            std::int64_t engines,
                            std::int64_t responses) {
  const auto least = std::ranges::find_if(
      shares, [&](std::int32_t share) { return rule.fits(share, engines, responses); });
  return least == shares.end() ? 0 : *least;
}

}  // namespace

void Scheduler::change_shares() {
  using Scoring = RoleSwitch::Scoring;
  switch (switch_.phase()) {
    case SwitchPhase::Train:
      if (training_ || preparing_ || saving_)
        return;
      if (const std::int32_t share = share_due();
          share > std::ssize(switch_.leaving()) && worth_spreading())
        return switch_.request_training(Scoring::None, who_leaves(share));
      if (select_batch())
        return;
      if (crowded() && !scoring_makes_a_batch())
        return switch_.request_rollout();
      if (scores_before_more())
        return switch_.request_scoring();
      if (config_.stragglers.prepare &&
          policy_->may_promise(stored_.queue.trainable_by_version(), stored_.standing) >=
              least_to_prepare())
        return;
      if (nobody_generates())
        return switch_.request_rollout();
      return;
    case SwitchPhase::Rollout:
      if (const std::int32_t share = share_due(); share > 0)
        switch_.request_training(waits_for_scores() ? Scoring::Needed : Scoring::None,
                                 who_leaves(share));
      return;
    case SwitchPhase::Score:
      return score_turn();
    default:
      return;
  }
}

/// Engines whose cards scoring and training should have now; 0: there is no work for them, or
/// generation needs all.
std::int32_t Scheduler::share_due() const {
  const bool batch = select_batch() || scoring_makes_a_batch();
  const bool part = config_.stragglers.prepare && may_promise_once_scored() >= least_to_prepare();
  if (!batch && !part)
    return 0;
  const auto engines = std::ssize(fleet_.turning_engines());
  const std::int64_t responses = responses_to_generate();
  return batch ? shares_.pressing(engines, responses)
               : share_of_parts(config_.shares, shares_, engines, responses);
}

std::vector<ActorId> Scheduler::who_leaves(std::int32_t share) const {
  std::vector<CardShares::Engine> engines;
  for (const ActorId id : fleet_.turning_engines()) {
    engines.push_back(
        {id, stored_.queue.load(id).responses, fleet_.state(id).version, switch_.has_left(id)});
  }
  return CardShares::emptiest(std::move(engines), share);
}

/// Of an update, much is left to compute.
bool Scheduler::worth_spreading() const {
  return !select_batch() ||
         std::int64_t{stored_.standing.wanted()} * kWorthSpreading >= config_.groups_per_update;
}

/// The engines that stayed could not do without these now, or without so many for parts of a batch.
/// Otherwise a trainer without work keeps its cards for what comes next.
bool Scheduler::crowded() const {
  return std::ssize(switch_.leaving()) > share_of_parts(config_.shares,
                                                        shares_,
                                                        std::ssize(fleet_.turning_engines()),
                                                        responses_to_generate());
}

/// Groups that lack nothing but scores make a batch, or a part that is worth preparing.
bool Scheduler::scores_before_more() const {
  if (!waits_for_scores())
    return false;
  const std::int64_t there =
      policy_->may_promise(stored_.queue.trainable_by_version(), stored_.standing);
  return scoring_makes_a_batch() ||
         (config_.stragglers.prepare && may_promise_once_scored() - there >= least_to_prepare());
}

/// Groups that lack nothing but what these cards can score, or not even that, as far as they may be
/// promised. A reference elsewhere scores whoever has these cards.
std::int64_t Scheduler::may_promise_once_scored() const {
  const auto& groups = fleet_.turning_references().empty() ? stored_.queue.trainable_by_version()
                                                           : stored_.queue.judged_by_version();
  return policy_->may_promise(groups, stored_.standing);
}

/// In flight, returned, and of groups that may be dispatched at once.
std::int64_t Scheduler::responses_to_generate() const {
  auto responses = static_cast<std::int64_t>(stored_.queue.ready(Task::Generate).size());
  for (const ActorId id : fleet_.rollouts())
    responses += stored_.queue.load(id).responses;
  if (can_admit()) {
    const OutstandingGroups& s = stored_.standing;
    const std::uint64_t most = s.capacity();
    const std::uint64_t groups =
        std::min(most - std::min(most, s.outstanding_groups()), groups_still_needed());
    responses += static_cast<std::int64_t>(groups) * config_.responses_per_group;
  }
  return responses;
}

/// Nothing that the batch lacks can come while these cards are away.
bool Scheduler::nobody_generates() const {
  return std::ranges::all_of(fleet_.rollouts(),
                             [this](ActorId id) { return stored_.queue.load(id).responses == 0; });
}

}  // namespace temper::orchestrator
