// The scheduler's part in groups that leave: failed, filtered, evicted, or trained.
#include "orchestrator/scheduler/scheduler.hpp"

namespace temper::orchestrator {

/// Counts it once, also where both its scores and its judgement failed.
void Scheduler::fail_response(ResponseId response, Reason why) {
  if (stored_.queue.row(response)->failed)
    return;
  ++stored_.progress.responses_failed;
  stored_.queue.fail(response);
  settle_failures(stored_.queue.group_of(response), std::move(why));
}

/// A group that cannot give an advantage any more leaves; a new one takes its place, unless so many
/// have failed since the last update that the next one will not come.
void Scheduler::settle_failures(GroupId group, Reason last) {
  const std::size_t least = config_.responses_per_group > 1 ? 2 : 1;
  const std::size_t live = stored_.queue.live_responses(group).size();
  if (live >= least)
    return filter(group);
  ++stored_.progress.groups_failed;
  ++stored_.failed_since_update;
  last.count = live;
  last.of = static_cast<std::uint64_t>(config_.responses_per_group);
  release(group, Outcome::Failed, last);
  if (config_.failed_groups_limit > 0 &&
      stored_.failed_since_update > config_.failed_groups_limit) {
    finish(Ending::Failed,
           Reason{.kind = ReasonKind::TooManyFailedGroups,
                  .group = group,
                  .count = stored_.failed_since_update},
           std::move(last));
  }
}

/// A group whose responses are judged, all alike, says nothing; a new one takes its place. Beyond
/// the limit it is trained for all that, so that a run ends whose every group is alike.
void Scheduler::filter(GroupId group) {
  const double most = config_.filter_limit * config_.groups_per_update;
  if (!config_.filter_equal_rewards || config_.responses_per_group == 1 ||
      !stored_.queue.rewards_equal(group) ||
      static_cast<double>(stored_.filtered_since_update + 1) > most)
    return;
  ++stored_.filtered_since_update;
  ++stored_.progress.groups_filtered;
  release(group, Outcome::Filtered, Reason{.kind = ReasonKind::EqualRewards});
}

void Scheduler::release(GroupId group, Outcome outcome, std::optional<Reason> reason) {
  const Group& g = *stored_.queue.group(group);
  for (std::size_t k = 0; k < g.rows.size(); ++k) {
    const LeaseId generating = g.rows[k].lease[static_cast<std::size_t>(Task::Generate)];
    if (const Lease* lease = stored_.queue.find(generating)) {
      const ResponseId r = stored_.queue.ids().at(group, k);
      emit(command::Cancel{lease->actor, r});
      withdrawn_.erase(r);
    }
  }
  just_in_time_.leaves(group);
  using Left = OutstandingGroups::Left;
  stored_.standing.remove(g.age_from(),
                          outcome == Outcome::Trained ? Left::Trained : Left::GivenUp);
  stored_.queue.remove_group(group);
  emit(command::Release{group, outcome, std::move(reason)});
}

/// Groups that the policy gives up for their age.
void Scheduler::evict() {
  if (finished_)
    return;
  for (const GroupId g : policy_->evict(stored_.queue, stored_.standing)) {
    ++stored_.progress.groups_evicted;
    release(g, Outcome::Evicted, Reason{.kind = ReasonKind::TooOld});
  }
}

}  // namespace temper::orchestrator
