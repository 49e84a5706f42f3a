// The scheduler's part in evaluations (docs/semantics.md, section 7): work of the same engines and
// verifiers, that no update counts.
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <algorithm>

namespace temper::orchestrator {

const DistQueue& Scheduler::table_of(LeaseId lease) const {
  return is_evaluation(lease) ? evaluation_.table() : stored_.queue;
}

Load Scheduler::load_of(ActorId actor) const {
  const Load training = stored_.queue.load(actor), evaluating = evaluation_.table().load(actor);
  return {training.leases + evaluating.leases, training.responses + evaluating.responses};
}

/// The first version, every so many of them, and the last.
bool Scheduler::evaluation_is_due_at(PolicyVersion version) const {
  const std::uint64_t every = config_.evaluation.every;
  return every > 0 && (version.value() % every == 0 || version.value() == config_.steps);
}

/// Cards that all take turns go to the engines for an evaluation, and the trainer waits for it.
bool Scheduler::evaluation_has_the_cards() const {
  return evaluation_.generates() && fleet_.takes_turns() && !fleet_.lends();
}

/// The next update would make a version that is to be evaluated, and the one before it still is.
bool Scheduler::evaluation_holds_up_training() const {
  return evaluation_has_the_cards() ||
         (evaluation_.under_way() && evaluation_is_due_at(next(stored_.progress.version)));
}

void Scheduler::evaluate() {
  if (finished_)
    return;
  if (stop_requested_) {
    if (evaluation_.under_way())
      give_up_evaluation();
    return;
  }
  if (evaluation_.complete()) {
    command::Evaluated result = evaluation_.result(now_);
    result.best = !stored_.best || result.pass_1 > *stored_.best;
    if (result.best)
      stored_.best = result.pass_1;
    stored_.evaluated = result.version;
    evaluation_.end();
    emit(result);
  }
  if (evaluation_.wants_engine() && !anyone_may_have(*evaluation_.version()))
    evaluate_anew();
  const PolicyVersion version = stored_.progress.version;
  if (!evaluation_.under_way() && evaluation_is_due_at(version) && stored_.evaluated != version)
    evaluation_.begin(version, now_);
}

void Scheduler::give_up_evaluation() {
  for (const auto& [id, group] : evaluation_.table().groups()) {
    for (std::size_t k = 0; k < group.rows.size(); ++k) {
      const LeaseId generating = group.rows[k].lease[static_cast<std::size_t>(Task::Generate)];
      if (const Lease* lease = evaluation_.table().find(generating))
        emit(command::Cancel{lease->actor, evaluation_.table().ids().at(id, k)});
    }
  }
  evaluation_.end();
}

/// An engine has the version and keeps it, or will get it: one that starts has none yet.
bool Scheduler::anyone_may_have(PolicyVersion version) const {
  return std::ranges::any_of(fleet_.rollouts(), [&](ActorId id) {
    const ActorState& a = fleet_.state(id);
    if (fleet_.spec(id).takes_turns && fleet_.lends())
      return false;
    return !a.ready() || a.staging.value_or(a.version.value_or(version)) <= version;
  });
}

/// Nobody has the version any more, and it cannot be had: the published one is evaluated instead.
void Scheduler::evaluate_anew() {
  give_up_evaluation();
  evaluation_.begin(stored_.progress.version, now_);
}

/// The version that an engine is to have: an engine that evaluates, or is to, keeps its version
/// until it need not any more.
PolicyVersion Scheduler::wanted_version(ActorId engine) const {
  const PolicyVersion published = stored_.progress.version;
  if (!evaluation_.under_way() || fleet_.spec(engine).takes_turns)
    return published;
  const std::optional<PolicyVersion>& has = fleet_.state(engine).version;
  const PolicyVersion evaluated = *evaluation_.version();
  const bool evaluates = has == evaluated && evaluation_.table().load(engine).responses > 0;
  const bool is_to = evaluation_.wants_engine() && (!has || *has <= evaluated);
  return evaluates || is_to ? evaluated : published;
}

void Scheduler::dispatch_evaluation() {
  while (evaluation_.wants_engine()) {
    const auto& ready = evaluation_.table().ready(Task::Generate);
    const GroupId group = evaluation_.table().group_of(*ready.begin());
    std::vector<ResponseId> responses;
    for (const ResponseId r : ready) {
      if (evaluation_.table().group_of(r) != group)
        break;
      responses.push_back(r);
    }
    const auto engine = engine_to_evaluate(static_cast<std::int32_t>(responses.size()));
    if (!engine)
      return;
    const LeaseId lease = evaluation_.table().lease(
        Task::Generate, *engine, responses, now_ + config_.deadlines.generate);
    emit(
        command::Dispatch{*engine, lease, group, *evaluation_.version(), std::move(responses), {}});
  }
}

/// The emptiest that has the version and room.
std::optional<ActorId> Scheduler::engine_to_evaluate(std::int32_t responses) const {
  std::optional<ActorId> best;
  for (const ActorId id : fleet_.rollouts()) {
    const ActorState& a = fleet_.state(id);
    const bool turns = fleet_.spec(id).takes_turns;
    if (!a.ready() || !a.has_kv || a.switching || a.staging || a.version != evaluation_.version() ||
        (turns && (fleet_.lends() || !switch_.allows_rollout(id))))
      continue;
    const std::int32_t busy = load_of(id).responses;
    if (busy > 0 && busy + responses > fleet_.spec(id).concurrency)
      continue;
    if (!best || busy < load_of(*best).responses)
      best = id;
  }
  return best;
}

/// One batch at each verifier at a time.
void Scheduler::judge_evaluation() {
  if (finished_ || !evaluation_.under_way())
    return;
  DistQueue& table = evaluation_.table();
  for (const ActorId id : fleet_.with_role(actors::RoleKind::Reward)) {
    const auto& ready = table.ready(Task::Reward);
    if (ready.empty() || !may_score(id))
      continue;
    const bool busy = std::ranges::any_of(judging_, [&](LeaseId lease) {
      const Lease* held = table.find(lease);
      return held != nullptr && held->actor == id;
    });
    if (busy)
      continue;
    std::vector<ResponseId> responses;
    for (auto it = ready.begin(); it != ready.end() && responses.size() < full_batch(Task::Reward);
         ++it)
      responses.push_back(*it);
    const LeaseId lease = table.lease(Task::Reward, id, responses, now_ + config_.deadlines.reward);
    std::erase_if(judging_, [&](LeaseId old) { return table.find(old) == nullptr; });
    judging_.push_back(lease);
    emit(command::Judge{id, lease, std::move(responses)});
  }
}

void Scheduler::take_evaluated(ActorId actor, const event::Generated::Item& item) {
  DistQueue& table = evaluation_.table();
  const Lease* lease = table.find(item.lease);
  if (!evaluation_.under_way() || lease == nullptr || lease->actor != actor ||
      !table.holds(item.lease, item.response))
    return;
  table.extend(item.lease, now_ + config_.deadlines.generate);
  table.append_tokens(item.response, item.prompt, item.tokens, item.segments);
  if (item.finish == actors::FinishReason::Interrupted)
    return table.give_back(item.lease, item.response);
  evaluation_.generated();
  if (item.finish != actors::FinishReason::Failed)
    return table.commit(item.lease, item.response, Field::Response);
  table.commit(item.lease, item.response);
  table.fail(item.response);
}

void Scheduler::take_evaluated(const event::Judged& e) {
  DistQueue& table = evaluation_.table();
  const Lease* lease = table.find(e.lease);
  if (!evaluation_.under_way() || lease == nullptr || lease->actor != e.actor)
    return;
  const std::vector<ResponseId> responses = lease->responses;
  for (std::size_t i = 0; i < responses.size() && i < e.items.size(); ++i) {
    if (!table.holds(e.lease, responses[i]))
      continue;
    if (!e.items[i].failed) {
      table.commit_reward(e.lease, responses[i], e.items[i].reward);
      continue;
    }
    table.commit(e.lease, responses[i]);
    table.fail(responses[i]);
  }
}

}  // namespace temper::orchestrator
