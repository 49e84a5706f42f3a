// The scheduler's part in shortening stragglers (StragglerConfig): where work goes, and what is
// done for the groups that the next update waits for. Nothing here moves a deadline.
#include "orchestrator/scheduler/scheduler.hpp"

#include <algorithm>
#include <limits>

namespace temper::orchestrator {
namespace {

/// Responses move if the emptiest engine has less than the fullest by at least one in so many: a
/// smaller difference does not pay for the interruption.
constexpr std::int64_t kLeastShare = 4;
/// An engine that has less than one in so many of its slots in use decodes about as fast as it can.
constexpr std::int64_t kCrowded = 8;
/// While the trainer waits, the reference scores so many batches in place of one.
constexpr std::size_t kUrgentBatches = 8;

}  // namespace

/// Of what is in flight and may still come, each engine's share, rounded up: while anything may
/// come, some engine has less.
std::int64_t Scheduler::even_share() const {
  std::int64_t engines = 0;
  auto load = static_cast<std::int64_t>(stored_.queue.ready(Task::Generate).size());
  for (const ActorId id : fleet_.rollouts()) {
    if (!fleet_.state(id).ready() || (fleet_.spec(id).takes_turns && !switch_.allows_rollout(id)))
      continue;
    if (one_by_one() && fleet_.state(id).version != stored_.progress.version)
      continue;  // it takes nothing new
    ++engines;
    load += stored_.queue.load(id).responses;
  }
  const OutstandingGroups& s = stored_.standing;
  const std::uint64_t most = s.capacity();
  std::uint64_t groups =
      std::min(most - std::min(most, s.outstanding_groups()), groups_still_needed());
  if (const auto batch = static_cast<std::uint64_t>(s.batch); !config_.stragglers.dispatch_ahead)
    groups = std::min(groups, batch - std::min(batch, s.since_step));
  load += static_cast<std::int64_t>(groups) * config_.responses_per_group;
  if (engines == 0)  // what is handed back may go to engines with older weights
    return one_by_one() ? std::numeric_limits<std::int64_t>::max() : 0;
  return (load + engines - 1) / engines;
}

/// Groups of this v0 and older are what the next update waits for; none: it has what it needs, or
/// any will do.
std::optional<PolicyVersion> Scheduler::urgent() const {
  if (finished_ || draining())
    return std::nullopt;
  const auto demand = policy_->demand(stored_.standing);
  if (!demand)
    return std::nullopt;
  std::int64_t there = 0;
  for (const auto& [v0, groups] : stored_.queue.trainable_by_version())
    there += v0 <= demand->newest ? groups : 0;
  return there < demand->groups ? std::optional(demand->newest) : std::nullopt;
}

/// Of the responses that the next update waits for, some of the fullest engine's go to the
/// emptiest, so that both are equally full.
void Scheduler::migrate() {
  if (!config_.stragglers.migrate || fleet_.rollouts().size() < 2 || !withdrawn_.empty() ||
      !stored_.queue.ready(Task::Generate).empty())
    return;
  const auto needed = urgent();
  if (!needed)
    return;
  std::optional<ActorId> full, empty;
  for (const ActorId id : fleet_.rollouts()) {
    const ActorState& a = fleet_.state(id);
    const bool away = fleet_.spec(id).takes_turns && !switch_.allows_rollout(id);
    if (!a.ready() || !a.has_kv || a.switching || away || a.version != stored_.progress.version)
      continue;
    const std::int32_t load = stored_.queue.load(id).responses;
    if (!full || load > stored_.queue.load(*full).responses)
      full = id;
    if (!empty || load < stored_.queue.load(*empty).responses)
      empty = id;
  }
  if (!full)
    return;
  const std::int64_t most = stored_.queue.load(*full).responses;
  const std::int64_t more = most - stored_.queue.load(*empty).responses;
  if (more < 2 || more * kLeastShare < most || most * kCrowded < fleet_.spec(*full).concurrency)
    return;
  std::vector<ResponseId> moving = longest_generating(*full, *needed);
  if (std::ssize(moving) > more / 2)
    moving.resize(static_cast<std::size_t>(more / 2));
  if (moving.empty())
    return;
  std::ranges::sort(moving);
  withdrawn_.insert(moving.begin(), moving.end());
  emit(command::Withdraw{*full, std::move(moving)});
}

/// Of groups up to `newest`, what the engine is generating; those that are expected to get longest
/// first, else the oldest.
std::vector<ResponseId> Scheduler::longest_generating(ActorId engine, PolicyVersion newest) const {
  struct Candidate {
    double length;
    ResponseId response;
  };
  std::vector<Candidate> found;
  for (const auto& [id, group] : stored_.queue.groups()) {
    if (group.trainable || group.age_from() > newest)
      continue;
    const double length = config_.stragglers.predict_length ? forecast_.of(group) : 0;
    for (std::size_t k = 0; k < group.rows.size(); ++k) {
      const LeaseId generating = group.rows[k].lease[static_cast<std::size_t>(Task::Generate)];
      const Lease* lease = stored_.queue.find(generating);
      if (lease != nullptr && lease->actor == engine)
        found.push_back({length, stored_.queue.ids().at(id, k)});
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Candidate::length);
  std::vector<ResponseId> out;
  out.reserve(found.size());
  for (const Candidate& c : found)
    out.push_back(c.response);
  return out;
}

/// Responses of a lease for the reference. While the trainer waits, those that it waits for do not
/// wait themselves for a full batch of others: they go alone, and others in small batches.
std::size_t Scheduler::full_batch(Task task) const {
  const auto full = static_cast<std::size_t>(
      task == Task::Reward ? std::min(config_.score_batch, config_.judge_batch)
                           : config_.score_batch);
  if (!config_.stragglers.deadline_first || task != Task::Reference || training_)
    return full;
  const auto needed = urgent();
  if (!needed)
    return full;
  std::size_t waited_for = 0;
  for (const ResponseId r : stored_.queue.ready(task)) {  // oldest first
    if (stored_.queue.group(stored_.queue.group_of(r))->age_from() > *needed || waited_for == full)
      break;
    ++waited_for;
  }
  return waited_for > 0 ? waited_for : std::max<std::size_t>(1, full / kUrgentBatches);
}

}  // namespace temper::orchestrator
