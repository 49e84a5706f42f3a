#include "orchestrator/scheduler/results/results.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// A judged group whose rewards are all equal carries no advantage; a new group takes its place.
/// Beyond the limit such groups are trained all the same, so that a run in which every group is
/// alike still ends.
void filter(RunState& run, GroupId group) {
  const double most = run.config.filter_limit * run.config.groups_per_update;
  if (!run.config.filter_equal_rewards || run.config.responses_per_group == 1 ||
      !run.saved.queue.rewards_equal(group) ||
      static_cast<double>(run.saved.filtered_since_step + 1) > most)
    return;
  ++run.saved.filtered_since_step;
  ++run.saved.progress.groups_filtered;
  run.release(group, Outcome::Filtered, Reason{.kind = ReasonKind::EqualRewards});
}

/// A group that cannot give an advantage any more leaves, and a new one takes its place, unless so
/// many have failed since the last step that the run ends. `last`: why the last of its responses
/// failed.
void settle_failures(RunState& run, GroupId group, Reason last) {
  const std::size_t least = run.config.responses_per_group > 1 ? 2 : 1;
  const std::size_t live = run.saved.queue.live_responses(group).size();
  if (live >= least)
    return filter(run, group);
  ++run.saved.progress.groups_failed;
  ++run.saved.failed_since_step;
  last.count = live;
  last.of = static_cast<std::uint64_t>(run.config.responses_per_group);
  run.release(group, Outcome::Failed, last);
  if (run.config.failed_groups_limit > 0 &&
      run.saved.failed_since_step > run.config.failed_groups_limit) {
    run.finish(Ending::Failed,
               Reason{.kind = ReasonKind::TooManyFailedGroups,
                      .group = group,
                      .count = run.saved.failed_since_step},
               std::move(last));
  }
}

/// Counts the response once, also where both its scores and its judgment failed.
void fail_response(RunState& run, ResponseId response, Reason why) {
  if (run.saved.queue.row(response)->failed)
    return;
  ++run.saved.progress.responses_failed;
  run.saved.queue.fail(response);
  settle_failures(run, run.saved.queue.group_of(response), std::move(why));
}

/// If that is the age rule, a group that is completely generated is as old as its tokens on
/// average, but never older than it has been counted: other groups were admitted because of that.
/// The mean may fall where lost tensors are generated again, from younger but fewer tokens.
void recount_age(RunState& run, GroupId id) {
  if (run.config.age == AgeRule::FirstToken)
    return;
  const auto mean = run.saved.queue.mean_version(id);
  if (!mean)
    return;
  const PolicyVersion before = run.saved.queue.group(id)->age_from();
  const PolicyVersion now = std::max(before, *mean);
  run.saved.outstanding.recount(before, now);
  run.saved.queue.count_age(id, now);
}

}  // namespace

void on_generated(RunState& run, const Learners& parts, const event::Generated& e) {
  DistQueue& queue = run.saved.queue;
  std::int64_t generated = 0;
  for (const auto& item : e.items) {
    if (is_evaluation(item.lease)) {
      parts.evaluations.take(run, e.actor, item);
      continue;
    }
    const Lease* lease = queue.find(item.lease);
    if (run.finished || lease == nullptr || lease->actor != e.actor ||
        !queue.holds(item.lease, item.response))
      continue;
    queue.extend(item.lease, run.now + run.config.deadlines.generate);
    queue.append_tokens(item.response, item.prompt, item.tokens, item.segments);
    run.withdrawn.erase(item.response);
    if (item.finish == actors::FinishReason::Interrupted) {
      queue.set_cached(item.response, item.cached ? std::optional(e.actor) : std::nullopt);
      queue.give_back(item.lease, item.response);
      continue;
    }
    if (item.finish == actors::FinishReason::Failed) {
      queue.commit(item.lease, item.response);
      recount_age(run, queue.group_of(item.response));
      fail_response(run, item.response, reason_with(ReasonKind::NotGenerated, e.failure));
    } else {
      queue.commit(item.lease, item.response, Field::Response);
      recount_age(run, queue.group_of(item.response));
      parts.dispatcher.response_ended(queue.row(item.response)->tokens);
      ++generated;
    }
  }
  parts.sharing.generated(generated, run.now);
}

void on_scored(RunState& run, const Learners& parts, const event::ReferenceScored& e) {
  const Lease* lease = run.saved.queue.find(e.lease);
  if (lease == nullptr || lease->actor != e.actor)
    return;
  const std::vector<ResponseId> responses = lease->responses;
  for (const ResponseId r : responses) {
    if (!run.saved.queue.holds(e.lease, r))
      continue;
    if (std::ranges::find(e.failed, r) != e.failed.end()) {
      run.saved.queue.commit(e.lease, r);
      fail_response(run, r, reason_with(ReasonKind::NotScored, e.failure));
      if (run.finished)
        return;
      continue;
    }
    run.saved.queue.commit(e.lease, r, Field::ReferenceLogprobs);
    parts.dispatcher.group_changed(run, run.saved.queue.group_of(r));
  }
}

void on_judged(RunState& run, const Learners& parts, const event::Judged& e) {
  run.rewarded = run.rewarded || !std::ranges::all_of(e.items, &event::Judged::Item::failed);
  if (e.gave_up && !run.rewarded) {
    Reason reason = reason_with(ReasonKind::VerifierNeverWorked, e.failure);
    reason.actor = e.actor;
    return run.finish(Ending::Failed, std::move(reason));
  }
  if (is_evaluation(e.lease))
    return parts.evaluations.take(run, e);
  const Lease* lease = run.saved.queue.find(e.lease);
  if (lease == nullptr || lease->actor != e.actor)
    return;
  const std::vector<ResponseId> responses = lease->responses;
  for (std::size_t i = 0; i < responses.size() && i < e.items.size() && !run.finished; ++i) {
    if (!run.saved.queue.holds(e.lease, responses[i]))
      continue;
    if (e.items[i].failed) {
      run.saved.queue.commit(e.lease, responses[i]);
      fail_response(run, responses[i], reason_with(ReasonKind::NotJudged, e.failure));
    } else {
      run.saved.queue.commit_reward(e.lease, responses[i], e.items[i].reward);
      parts.dispatcher.group_changed(run, run.saved.queue.group_of(responses[i]));
      filter(run, run.saved.queue.group_of(responses[i]));
    }
  }
}

void evict(RunState& run) {
  if (run.finished)
    return;
  for (const GroupId g : run.rule->evict(run.saved.queue, run.saved.outstanding)) {
    ++run.saved.progress.groups_evicted;
    run.release(g, Outcome::Evicted, Reason{.kind = ReasonKind::TooOld});
  }
}

}  // namespace temper::orchestrator
