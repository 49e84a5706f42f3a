#include "orchestrator/scheduler/evaluations/evaluations.hpp"

#include "orchestrator/scheduler/dispatch/scoring.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

void give_up(RunState& run) {
  for (const auto& [id, group] : run.evaluation.table().groups()) {
    for (std::size_t k = 0; k < group.rows.size(); ++k) {
      const LeaseId generating = group.rows[k].lease[static_cast<std::size_t>(Task::Generate)];
      if (const Lease* lease = run.evaluation.table().find(generating))
        run.emit(command::Cancel{lease->actor, run.evaluation.table().ids().at(id, k)});
    }
  }
  run.evaluation.end();
}

/// An engine has the version and keeps it, or will get it: one that starts has none yet.
bool anyone_may_have(const RunState& run, PolicyVersion version) {
  return std::ranges::any_of(run.fleet.rollouts(), [&](ActorId id) {
    const ActorState& a = run.fleet.state(id);
    if (run.fleet.spec(id).takes_turns && run.fleet.lends())
      return false;
    return !a.ready() || a.staging.value_or(a.version.value_or(version)) <= version;
  });
}

/// The least loaded engine that has the version and room.
std::optional<ActorId> engine_to_evaluate(const RunState& run,
                                          const CardSharing& sharing,
                                          std::int32_t responses) {
  std::optional<ActorId> best;
  for (const ActorId id : run.fleet.rollouts()) {
    const ActorState& a = run.fleet.state(id);
    if (!a.ready() || !a.has_kv || a.switching || a.staging ||
        a.version != run.evaluation.version() || !sharing.may_generate(run, id) ||
        (run.fleet.spec(id).takes_turns && run.fleet.lends()))
      continue;
    const std::int32_t busy = run.load_of(id).responses;
    if (busy > 0 && busy + responses > run.fleet.spec(id).concurrency)
      continue;
    if (!best || busy < run.load_of(*best).responses)
      best = id;
  }
  return best;
}

}  // namespace

void Evaluations::advance(RunState& run) const {
  if (run.finished)
    return;
  if (run.stop_requested) {
    if (run.evaluation.under_way())
      give_up(run);
    return;
  }
  if (run.evaluation.complete()) {
    command::Evaluated result = run.evaluation.result(run.now);
    result.best = !run.saved.best || result.pass_1 > *run.saved.best;
    if (result.best)
      run.saved.best = result.pass_1;
    run.saved.evaluated = result.version;
    run.evaluation.end();
    run.emit(result);
  }
  if (run.evaluation.wants_engine() && !anyone_may_have(run, *run.evaluation.version()))
    restart_evaluation(run);
  const PolicyVersion version = run.saved.progress.version;
  if (!run.evaluation.under_way() && run.evaluation_is_due_at(version) &&
      run.saved.evaluated != version)
    run.evaluation.begin(version, run.now);
}

void restart_evaluation(RunState& run) {
  give_up(run);
  run.evaluation.begin(run.saved.progress.version, run.now);
}

PolicyVersion wanted_version(const RunState& run, ActorId engine) {
  const PolicyVersion published = run.saved.progress.version;
  if (!run.evaluation.under_way() || run.fleet.spec(engine).takes_turns)
    return published;
  const std::optional<PolicyVersion>& has = run.fleet.state(engine).version;
  const PolicyVersion evaluated = *run.evaluation.version();
  const bool evaluates = has == evaluated && run.evaluation.table().load(engine).responses > 0;
  const bool is_to = run.evaluation.wants_engine() && (!has || *has <= evaluated);
  return evaluates || is_to ? evaluated : published;
}

void Evaluations::dispatch(RunState& run, const CardSharing& sharing) const {
  if (run.finished)
    return;
  while (run.evaluation.wants_engine()) {
    const auto& ready = run.evaluation.table().ready(Task::Generate);
    const GroupId group = run.evaluation.table().group_of(*ready.begin());
    std::vector<ResponseId> responses;
    for (const ResponseId r : ready) {
      if (run.evaluation.table().group_of(r) != group)
        break;
      responses.push_back(r);
    }
    const auto engine =
        engine_to_evaluate(run, sharing, static_cast<std::int32_t>(responses.size()));
    if (!engine)
      return;
    const LeaseId lease = run.evaluation.table().lease(
        Task::Generate, *engine, responses, run.now + run.config.deadlines.generate);
    run.emit(command::Dispatch{
        *engine, lease, group, *run.evaluation.version(), std::move(responses), {}});
  }
}

void Evaluations::judge(RunState& run, const CardSharing& sharing) {
  if (run.finished || !run.evaluation.under_way())
    return;
  DistQueue& table = run.evaluation.table();
  for (const ActorId id : run.fleet.with_role(actors::RoleKind::Reward)) {
    const auto& ready = table.ready(Task::Reward);
    if (ready.empty() || !sharing.may_score(run, id))
      continue;
    const bool busy = std::ranges::any_of(judging_, [&](LeaseId lease) {
      const Lease* held = table.find(lease);
      return held != nullptr && held->actor == id;
    });
    if (busy)
      continue;
    std::vector<ResponseId> responses;
    for (auto it = ready.begin();
         it != ready.end() && responses.size() < full_batch(run, Task::Reward);
         ++it)
      responses.push_back(*it);
    const LeaseId lease =
        table.lease(Task::Reward, id, responses, run.now + run.config.deadlines.reward);
    std::erase_if(judging_, [&](LeaseId old) { return table.find(old) == nullptr; });
    judging_.push_back(lease);
    run.emit(command::Judge{id, lease, std::move(responses)});
  }
}

void Evaluations::take(RunState& run, ActorId engine, const event::Generated::Item& item) const {
  DistQueue& table = run.evaluation.table();
  const Lease* lease = table.find(item.lease);
  if (!run.evaluation.under_way() || lease == nullptr || lease->actor != engine ||
      !table.holds(item.lease, item.response))
    return;
  table.extend(item.lease, run.now + run.config.deadlines.generate);
  table.append_tokens(item.response, item.prompt, item.tokens, item.segments);
  if (item.finish == actors::FinishReason::Interrupted)
    return table.give_back(item.lease, item.response);
  run.evaluation.generated();
  if (item.finish != actors::FinishReason::Failed)
    return table.commit(item.lease, item.response, Field::Response);
  table.commit(item.lease, item.response);
  table.fail(item.response);
}

void Evaluations::take(RunState& run, const event::Judged& e) const {
  DistQueue& table = run.evaluation.table();
  const Lease* lease = table.find(e.lease);
  if (!run.evaluation.under_way() || lease == nullptr || lease->actor != e.actor)
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
