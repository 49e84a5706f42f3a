// What the scheduler does after an event: everything that can move moves.
#include "orchestrator/scheduler/scheduler.hpp"

#include <algorithm>
#include <limits>

namespace temper::orchestrator {

Reason Scheduler::passed(const Overdue& missed) const {
  const Deadlines& d = config_.deadlines;
  Reason reason{.kind = ReasonKind::DeadlinePassed,
                .version = missed.version,
                .deadline = missed.deadline,
                .action = missed.action};
  switch (missed.deadline) {
    case DeadlineKind::Start:
      reason.limit = start_limit(missed.actor);
      if (const ActorState& a = fleet_.state(missed.actor);
          a.launch_deadline >= latest_start(missed.actor)) {
        reason.deadline = DeadlineKind::LongestStart;
        reason.limit = latest_start(missed.actor) - a.launched_at;
      }
      break;
    case DeadlineKind::Switch:
      reason.limit = d.switching;
      break;
    default:
      reason.limit = d.weights;
  }
  return reason;
}

Reason Scheduler::passed(const Lease& lease) const {
  using K = DeadlineKind;
  const Deadlines& d = config_.deadlines;
  const std::array<std::pair<K, Duration>, kTasks> limits{{{K::Generate, d.generate},
                                                           {K::Reference, d.reference},
                                                           {K::Reward, d.reward},
                                                           {K::Train, d.train}}};
  const auto& [deadline, limit] = limits[static_cast<std::size_t>(lease.task)];
  return {.kind = ReasonKind::DeadlinePassed,
          .deadline = deadline,
          .limit = limit,
          .count = static_cast<std::uint64_t>(lease.open)};
}

void Scheduler::expire() {
  if (finished_)
    return;
  while (const auto late = fleet_.overdue(now_)) {
    if (fleet_.spec(late->actor).attached && late->deadline == DeadlineKind::Start) {
      wait_on(late->actor);
    } else {
      lose(late->actor, passed(*late));
    }
    if (finished_)
      return;
  }
  while (const auto id = stored_.queue.expired(now_)) {
    const Lease lease = *stored_.queue.find(*id);
    lose(lease.actor, passed(lease));
    if (finished_)
      return;
  }
  while (const auto id = evaluation_.table().expired(now_)) {
    const Lease lease = *evaluation_.table().find(*id);
    Reason reason = passed(lease);
    reason.evaluation = true;
    lose(lease.actor, std::move(reason));
    if (finished_)
      return;
  }
  if (saving_ && *saving_ <= now_) {
    finish(Ending::Failed,
           Reason{.kind = ReasonKind::DeadlinePassed,
                  .actor = fleet_.trainer(),
                  .deadline = DeadlineKind::Checkpoint,
                  .limit = config_.deadlines.checkpoint});
  } else if (drain_deadline_ && *drain_deadline_ <= now_) {
    finish(Ending::Stopped,
           Reason{.kind = ReasonKind::DeadlinePassed,
                  .deadline = DeadlineKind::Drain,
                  .limit = config_.deadlines.drain});
  }
}

void Scheduler::publish_weights() {
  if (finished_ || !fleet_.state(fleet_.trainer()).ready())
    return;
  for (const ActorId id : fleet_.rollouts()) {
    ActorState& a = fleet_.state(id);
    if (!a.ready() || a.switching)
      continue;
    const PolicyVersion published = wanted_version(id);
    const bool turns = fleet_.spec(id).takes_turns;
    if (a.staging && a.staged && !a.committing) {
      // In a role switch all engines stage before any commits; else each for itself.
      if (turns && switch_.phase() == SwitchPhase::Reshard && switch_.has_left(id))
        continue;
      a.committing = true;
      a.weights_deadline = now_ + config_.deadlines.weights;
      emit(command::CommitWeights{id, *a.staging});
    } else if (!a.staging && a.version != published && (!turns || switch_.allows_publication(id))) {
      a.staging = published;
      a.staged = false;
      a.weights_deadline = now_ + config_.deadlines.weights;
      emit(command::StageWeights{id, published});
    } else if (!a.staging && !a.has_kv && a.version == published &&
               (!turns || switch_.allows_kv(id))) {
      a.switching = actors::SwitchAction::AllocateKv;
      a.switch_deadline = now_ + config_.deadlines.switching;
      emit(command::Switch{id, actors::SwitchAction::AllocateKv});
    }
  }
}

void Scheduler::checkpoint_or_end() {
  if (finished_ || training_ || preparing_ || saving_ || !fleet_.state(fleet_.trainer()).ready())
    return;
  if (fleet_.state(fleet_.trainer()).switching)
    return;
  const PolicyVersion version = stored_.progress.version;
  const bool done = version.value() >= config_.steps;
  const bool due =
      version.value() > 0 &&
      ((config_.checkpoint_every > 0 && version.value() % config_.checkpoint_every == 0) ||
       (config_.evaluation.checkpoint && evaluation_is_due_at(version)));
  if ((done || due || stop_requested_) && saved_ != version) {
    saving_ = now_ + config_.deadlines.checkpoint;
    emit(command::SaveCheckpoint{fleet_.trainer(), version});
  } else if (done && evaluation_is_due_at(version) && stored_.evaluated != version) {
    if (stop_requested_)  // its last evaluation is part of the run
      finish(Ending::Stopped, Reason{.kind = ReasonKind::StoppedBeforeEvaluation});
  } else if (done) {
    finish(Ending::Complete);
  } else if (stop_requested_) {
    finish(Ending::Stopped, Reason{.kind = ReasonKind::StopRequested});
  }
}

void Scheduler::train() {
  if (finished_ || training_ || preparing_ || saving_ || draining() || !switch_.allows_training() ||
      evaluation_holds_up_training())
    return;
  const ActorId trainer = fleet_.trainer();
  if (!fleet_.state(trainer).ready() || fleet_.state(trainer).switching)
    return;
  const auto rest = select_batch();
  if (!rest)
    return;
  command::Train command;
  command.actor = trainer;
  command.certificate.step = stored_.progress.version;
  command.certificate.bound =
      policy_->guarantee(stored_.standing).value_or(std::numeric_limits<std::uint64_t>::max());
  for (const LeaseId lease : prepared_) {
    for (const ResponseId r : stored_.queue.find(lease)->responses) {
      if (const GroupId g = stored_.queue.group_of(r); batch_.empty() || batch_.back() != g)
        batch_.push_back(g);
    }
  }
  std::vector<ResponseId> leased;
  for (const GroupId g : *rest) {
    batch_.push_back(g);
    ++stored_.standing.in_training[stored_.queue.group(g)->age_from()];
    std::ranges::copy(stored_.queue.live_responses(g), std::back_inserter(leased));
  }
  std::ranges::sort(
      batch_, {}, [this](GroupId g) { return std::pair(stored_.queue.group(g)->age_from(), g); });
  for (const GroupId g : batch_) {
    const Group& group = *stored_.queue.group(g);
    command.certificate.groups.push_back({g, group.dispatched, group.counted_from});
    std::ranges::copy(stored_.queue.live_responses(g), std::back_inserter(command.responses));
  }
  stored_.standing.updating = true;
  command.lease =
      stored_.queue.lease(Task::Train, trainer, std::move(leased), now_ + config_.deadlines.train);
  training_ = command.lease;
  just_in_time_.update_begins(now_);
  emit(std::move(command));
}

std::optional<std::vector<GroupId>> Scheduler::select_batch() const {
  return policy_->select(stored_.queue, stored_.standing);
}

bool Scheduler::waits_for_scores() const {
  return !fleet_.turning_references().empty() && !stored_.queue.ready(Task::Reference).empty();
}

bool Scheduler::scoring_makes_a_batch() const {
  return waits_for_scores() &&
         policy_->may_train(stored_.queue.judged_by_version(), stored_.standing);
}

void Scheduler::dispatch() {
  held_until_.reset();
  if (finished_)
    return;
  while (!draining() && dispatch_returned()) {
  }
  dispatch_evaluation();
  if (draining())
    return;
  while (dispatch_new()) {
  }
}

/// Responses that lost their engine or were interrupted go first, to an engine whose weights are
/// not older than their group's v0, else the group would be staler than its deadline says, nor
/// than those that any of them was sampled with: a version never regresses.
bool Scheduler::dispatch_returned() {
  const auto& ready = stored_.queue.ready(Task::Generate);
  if (ready.empty())
    return false;
  const GroupId group = stored_.queue.group_of(*ready.begin());
  std::vector<ResponseId> responses;
  PolicyVersion newest = stored_.queue.group(group)->dispatched;
  for (const ResponseId r : ready) {
    if (stored_.queue.group_of(r) != group)
      break;
    responses.push_back(r);
    if (const auto& segments = stored_.queue.row(r)->segments; !segments.empty())
      newest = std::max(newest, segments.back().version);
  }
  const auto engine = engine_for(Work::Returned, responses.size(), newest);
  if (!engine)
    return false;
  send(*engine, group, std::move(responses));
  return true;
}

bool Scheduler::dispatch_new() {
  if (!wants_groups())
    return false;
  const auto engine = engine_for(
      Work::New, static_cast<std::size_t>(config_.responses_per_group), PolicyVersion(0));
  if (!engine)
    return false;
  const PolicyVersion version = *fleet_.state(*engine).version;
  if (!policy_->admits(version, stored_.queue, stored_.standing) || may_wait())
    return false;
  const GroupId group(stored_.next_group++);
  ++stored_.progress.groups_dispatched;
  stored_.queue.add_group(group, version);
  stored_.standing.add(version);
  just_in_time_.dispatched(group, now_);
  send(*engine, group, stored_.queue.live_responses(group));
  return true;
}

/// Whether the trainer does not need one more group yet; asks again when it does.
bool Scheduler::may_wait() {
  if (config_.admission != Admission::JustInTime || (fleet_.takes_turns() && !fleet_.lends()))
    return false;
  if (evaluation_holds_up_training())  // nobody knows until when
    return false;
  const OutstandingGroups& s = stored_.standing;
  // Those of the update under way are a batch; what is promised to the next one is ahead.
  const std::int64_t ahead =
      static_cast<std::int64_t>(s.outstanding_groups()) - (s.updating ? s.batch : 0);
  const auto due = just_in_time_.due(ahead, now_);
  if (!due || *due <= now_)
    return false;
  just_in_time_.held_back();
  held_until_ = *due;
  return true;
}

void Scheduler::send(ActorId engine, GroupId group, std::vector<ResponseId> responses) {
  const PolicyVersion version = *fleet_.state(engine).version;
  const LeaseId lease =
      stored_.queue.lease(Task::Generate, engine, responses, now_ + config_.deadlines.generate);
  command::Dispatch command{engine, lease, group, version, std::move(responses), {}};
  if (config_.stragglers.keep_kv &&
      !stored_.queue.row(command.responses.front())->segments.empty()) {
    for (const ResponseId r : command.responses)
      command.cached_on.push_back(stored_.queue.row(r)->cached_on);
  }
  emit(std::move(command));
}

/// The emptiest engine that has room; newest weights first, so that no deadline is nearer than
/// needed.
std::optional<ActorId> Scheduler::engine_for(Work work,
                                             std::size_t responses,
                                             PolicyVersion at_least) const {
  std::optional<ActorId> best;
  const std::int64_t most =
      config_.stragglers.even_load ? even_share() : std::numeric_limits<std::int64_t>::max();
  for (const ActorId id : fleet_.rollouts()) {
    const ActorState& a = fleet_.state(id);
    if (!a.ready() || !a.has_kv || a.switching || !a.version || *a.version < at_least)
      continue;
    const bool current = *a.version == stored_.progress.version;
    const bool any_will_do = one_by_one() && work == Work::Returned;
    if (fleet_.spec(id).takes_turns && (!switch_.allows_rollout(id) || !(current || any_will_do)))
      continue;
    const std::int32_t busy = stored_.queue.load(id).responses;
    if (busy >= most)
      continue;
    const std::int32_t all = load_of(id).responses;
    if (all > 0 && all + static_cast<std::int32_t>(responses) > fleet_.spec(id).concurrency) {
      continue;
    }
    if (!best || *a.version > *fleet_.state(*best).version ||
        (*a.version == *fleet_.state(*best).version &&
         busy < stored_.queue.load(*best).responses)) {
      best = id;
    }
  }
  return best;
}

std::uint64_t Scheduler::groups_still_needed() const {
  const std::uint64_t total = config_.steps * static_cast<std::uint64_t>(config_.groups_per_update);
  const std::uint64_t covered = stored_.progress.groups_trained + stored_.queue.groups().size();
  return total > covered ? total - covered : 0;
}

bool Scheduler::wants_groups() const {
  const OutstandingGroups& s = stored_.standing;
  const auto batch = static_cast<std::uint64_t>(s.batch);
  return groups_still_needed() > 0 && stored_.queue.has_credit() &&
         (config_.stragglers.dispatch_ahead || s.since_step < batch ||
          s.outstanding_groups() < batch);
}

bool Scheduler::can_admit() const {
  return wants_groups() &&
         policy_->admits(stored_.progress.version, stored_.queue, stored_.standing);
}

void Scheduler::score(Task task, actors::RoleKind role, Duration deadline) {
  if (finished_)
    return;
  for (const ActorId id : fleet_.with_role(role)) {
    const auto& ready = stored_.queue.ready(task);
    auto full = full_batch(task);
    if (fleet_.spec(id).takes_turns) {  // nothing more comes during its turn: its share at once
      const std::size_t all = fleet_.turning_references().size();
      full = std::max(full, (ready.size() + all - 1) / all);
    }
    // One batch at work and at most one behind it; the second only when full, so that batches grow
    // while an actor is busy.
    const auto has_room = [&] {
      const std::int32_t leases = stored_.queue.load(id).leases;
      return leases == 0 || (leases == 1 && ready.size() >= full);
    };
    while (may_score(id) && !ready.empty() && has_room()) {
      std::vector<ResponseId> responses;
      responses.reserve(std::min(full, ready.size()));
      for (auto it = ready.begin(); it != ready.end() && responses.size() < full; ++it) {
        responses.push_back(*it);
      }
      const LeaseId lease = stored_.queue.lease(task, id, responses, now_ + deadline);
      if (task == Task::Reference) {
        emit(command::ScoreReference{id, lease, std::move(responses)});
      } else {
        emit(command::Judge{id, lease, std::move(responses)});
      }
    }
  }
}

bool Scheduler::may_score(ActorId id) const {
  const ActorState& a = fleet_.state(id);
  if (!a.ready() || !fleet_.spec(id).takes_turns)
    return a.ready();
  return a.onboard && !a.switching && switch_.phase() == SwitchPhase::Score;
}

}  // namespace temper::orchestrator
