// Auditor: checks whether each command of the scheduler is legal in the current state.
#include "orchestrator/record/audit.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace temper::orchestrator {

void Auditor::forget(ActorId actor) {
  state_.engine_version.erase(actor.value());
  state_.visiting.erase(actor.value());
  state_.waits.forget(actor);
  take_back(actor);
  std::erase_if(state_.leases, [&](const auto& l) { return l.second.actor == actor.value(); });
  state_.evaluation.forget(actor);
}

void Auditor::check_at_work(ActorId actor) {
  if (actor.value() >= config_.actors.size())
    violation(fmt::format("work is given to actor {}, which does not exist", actor));
  else if (config_.actors[actor.value()].away)
    violation(
        fmt::format("work is given to {}, which was removed", config_.actors[actor.value()].name));
}

/// An actor must not be retired while it holds work; a lost actor holds none.
void Auditor::on_command(const command::Retire& c) {
  if (c.actor.value() >= config_.actors.size() || !config_.actors[c.actor.value()].away)
    violation(fmt::format("actor {} is retired, but was not removed from the run", c.actor));
  forget(c.actor);
}

void Auditor::take_share(const std::vector<ActorId>& cards_of) {
  state_.share.reset();
  if (cards_of.empty())
    return;
  state_.share.emplace();
  for (const ActorId engine : cards_of) {
    state_.share->insert(engine.value());
    if (!takes_turns(engine))
      violation(fmt::format("the cards of {} are exclusive, but are given to others", engine));
  }
  if (config_.switching == Switching::OneByOne &&
      std::ranges::find(config_.shares, std::ssize(cards_of)) == config_.shares.end())
    violation(fmt::format("the trainer gets the cards of {} engines, a number that has no layout",
                          cards_of.size()));
}

/// At any time, time-shared cards belong to one role.
void Auditor::on_command(const command::Switch& c) {
  using A = actors::SwitchAction;
  if (c.action == A::OnloadOptimizer || c.action == A::OnloadReference)
    take_share(c.cards_of);
  if (c.action == A::OnloadOptimizer) {
    state_.trainer_parked = false;
    if (shared_cards_hold_engines() || !state_.visiting.empty())
      violation("the optimizer is loaded on cards that others still hold");
  }
  if (c.action == A::OffloadOptimizer && state_.updating != 0)
    violation("the optimizer is offloaded during a step");
  if (c.action == A::OnloadReference) {
    if (!state_.trainer_parked || shared_cards_hold_engines())
      violation("a reference is loaded on cards that others still hold");
    state_.visiting.insert(c.actor.value());
  }
  if (c.action == A::AllocateKv && takes_turns(c.actor) && is_of_share(c.actor.value()) &&
      !state_.trainer_parked)
    violation("a KV cache is allocated beside the optimizer");
}

void Auditor::on_command(const command::Dispatch& c) {
  check_at_work(c.actor);
  if (takes_turns(c.actor) && is_of_share(c.actor.value()) && !state_.trainer_parked)
    violation(fmt::format("group {} is dispatched to cards that are training", c.group));
  const auto engine = state_.engine_version.find(c.actor.value());
  if (engine == state_.engine_version.end() || engine->second != c.version.value()) {
    violation(
        fmt::format("group {} is dispatched under a version its engine does not hold", c.group));
  }
  if (is_evaluation(c.lease))
    return note(state_.evaluation.dispatch(c, state_.version));
  if (!state_.outstanding.contains(c.group.value())) {
    if (state_.dispatched > 0 && c.group.value() <= state_.highest_group) {
      violation(fmt::format("group {} is dispatched again after it was released", c.group));
    }
    state_.highest_group = c.group.value();
    ++state_.dispatched;
    GroupState& group = state_.outstanding[c.group.value()];
    group.dispatched = group.age_from = c.version.value();
    for (const ResponseId r : c.responses)
      group.responses[r.value()];
    note(state_.problems.dispatch(c, state_.version));
    if (const auto teacher = state_.problems.teacher(c.group.value()))
      group.teacher = *teacher;
  } else if (c.version.value() < state_.outstanding[c.group.value()].dispatched) {
    violation(fmt::format("group {} continues with weights older than its first", c.group));
  }
  grant(c.actor, c.lease, c.responses);
  for (const ResponseId r : c.responses)
    state_.waits.generating(r.value());
}

void Auditor::on_command(const command::ScoreReference& c) {
  check_at_work(c.actor);
  if (takes_turns(c.actor) && !state_.visiting.contains(c.actor.value()))
    violation("a reference scores on cards that it does not hold");
  check_teacher(c);
  grant(c.actor, c.lease, c.responses);
  for (const ResponseId r : c.responses)
    state_.waits.settled(r.value());
}

void Auditor::check_teacher(const command::ScoreReference& c) {
  if (!config_.problems.teachers || c.actor.value() >= config_.actors.size())
    return;
  const ActorSpec& actor = config_.actors[c.actor.value()];
  for (const ResponseId r : c.responses) {
    const auto group = state_.outstanding.find(group_of(r.value()));
    if (group != state_.outstanding.end() && actor.teacher != group->second.teacher) {
      violation(fmt::format("response {} is scored by {}, which is not of its teacher `{}`",
                            r,
                            actor.name,
                            config_.problems.teachers->names[group->second.teacher]));
    }
  }
}

void Auditor::on_command(const command::Cancel& c) {
  if (is_evaluation(c.response))
    state_.evaluation.cancel();
}

void Auditor::on_command(const command::Judge& c) {
  check_at_work(c.actor);
  if (is_evaluation(c.lease))
    return note(state_.evaluation.judge(c));
  grant(c.actor, c.lease, c.responses);
}

void Auditor::on_command(const command::Train& c) {
  check_at_work(c.actor);
  state_.updating = c.lease.value();
  tail_.awaited = false;
  if (state_.trainer_parked || shared_cards_hold_engines() || !state_.visiting.empty())
    violation("a step runs on cards that others still hold");
  if (c.certificate.step.value() != state_.version)
    violation("a step starts from another version");
  if (c.certificate.bound != bound().value_or(std::numeric_limits<std::uint64_t>::max()))
    violation("a certificate has another bound than the run's staleness rule");
  if (c.certificate.groups.size() != static_cast<std::size_t>(config_.groups_per_update)) {
    violation("the number of groups of a step is not groups_per_update");
  }
  std::set<std::uint64_t> sent;
  for (const ResponseId r : c.responses)
    sent.insert(r.value());
  std::size_t expected = 0;
  for (const auto& entry : c.certificate.groups) {
    const auto it = state_.outstanding.find(entry.group.value());
    if (it == state_.outstanding.end() || it->second.in_update != 0) {
      violation(fmt::format("group {} is trained twice or was never dispatched", entry.group));
      continue;
    }
    it->second.in_update = c.lease.value();
    if (entry.dispatched.value() != it->second.dispatched ||
        entry.age_from().value() != it->second.age_from) {
      violation(fmt::format("the certificate is wrong about group {}", entry.group));
    }
    for (const auto& [id, r] : it->second.responses) {
      if (r.failed)
        continue;
      ++expected;
      if (!is_whole(r) || !sent.contains(id)) {
        violation(fmt::format("response {} is trained on before it is complete", id));
      }
    }
  }
  if (expected != sent.size())
    violation("a step has responses of other groups");
  for (const auto& [id, group] : state_.outstanding) {
    if (group.promised && group.in_update != c.lease.value())
      violation(fmt::format(
          "the gradients of group {} were requested, but the step does not contain it", id));
  }
  grant(c.actor, c.lease, c.responses);
}

void Auditor::on_command(const command::Prepare& c) {
  if (state_.trainer_parked || shared_cards_hold_engines() || !state_.visiting.empty())
    violation("gradients are computed on cards that others still hold");
  if (c.step.value() != state_.version)
    violation("gradients are computed from another version");
  std::set<std::uint64_t> sent;
  for (const ResponseId r : c.responses)
    sent.insert(r.value());
  std::set<std::uint64_t> groups;
  for (const std::uint64_t r : sent)
    groups.insert(group_of(r));
  for (const std::uint64_t id : groups) {
    const auto it = state_.outstanding.find(id);
    if (it == state_.outstanding.end() || it->second.in_update != 0 || it->second.promised) {
      violation(fmt::format("group {} is prepared twice or was never dispatched", id));
      continue;
    }
    it->second.promised = true;
    for (const auto& [response, r] : it->second.responses) {
      if (!r.failed && (!is_whole(r) || !sent.contains(response)))
        violation(fmt::format("response {} is prepared before it is complete", response));
    }
  }
  grant(c.actor, c.lease, c.responses);
}

void Auditor::on_command(const command::Release& c) {
  const auto it = state_.outstanding.find(c.group.value());
  if (c.outcome == Outcome::Trained) {
    if (it != state_.outstanding.end())
      violation("a group is released as trained but was not");
    return;
  }
  if (it == state_.outstanding.end())
    return violation("a group is released that is not outstanding");
  if (it->second.in_update != 0 || it->second.promised)
    violation("a group is dropped while it is being trained");
  if (c.outcome == Outcome::Filtered)
    check_filtered(c.group, it->second);
  ++(c.outcome == Outcome::Failed    ? state_.failed
     : c.outcome == Outcome::Evicted ? state_.evicted
                                     : state_.filtered);
  drop(it, c.outcome);
  if (c.outcome != Outcome::Filtered)
    drop_empty_leases();
}

/// A lease whose groups were all released has no effect any more, and may never be answered. Other
/// leases keep their responses, because a judge names them by index.
void Auditor::drop_empty_leases() {
  std::erase_if(state_.leases, [&](const auto& l) {
    return l.first != state_.updating && std::ranges::none_of(l.second.responses, [&](auto r) {
             return state_.outstanding.contains(group_of(r));
           });
  });
}

void Auditor::check_filtered(GroupId id, const GroupState& group) {
  if (!config_.filter_equal_rewards)
    violation(fmt::format("group {} is filtered, though the run does not filter groups", id));
  std::set<double> rewards;
  for (const auto& [response, state] : group.responses) {
    if (state.failed)
      continue;
    if (!state.generated || !state.judged)
      violation(fmt::format("group {} is filtered before it is judged", id));
    rewards.insert(state.reward);
  }
  if (rewards.size() != 1)
    violation(fmt::format("group {} is filtered, but its rewards differ", id));
}

void Auditor::drop(Outstanding::iterator group, Outcome outcome) {
  std::optional<std::vector<double>> rewards;
  if (outcome == Outcome::Trained || outcome == Outcome::Filtered) {
    rewards.emplace();
    for (const auto& [id, r] : group->second.responses) {
      if (!r.failed)
        rewards->push_back(r.reward);
    }
  }
  state_.problems.leave(group->first, rewards);
  const auto each = static_cast<std::uint64_t>(config_.responses_per_group);
  state_.waits.left(group->first * each, (group->first + 1) * each);
  state_.outstanding.erase(group);
}

// --- Waits

void Auditor::set_stage(std::uint64_t id, const ResponseState& r) {
  if (!r.failed && !r.generated)
    state_.waits.handed_back(id);
  else if (!r.failed && !r.scored && config_.has_reference())
    state_.waits.to_score(id, state_.outstanding.at(group_of(id)).teacher);
  else
    state_.waits.settled(id);
}

/// Of other roles, no lease changes a stage.
void Auditor::take_back(ActorId actor) {
  using actors::RoleKind;
  if (actor.value() >= config_.actors.size() ||
      (config_.actors[actor.value()].role != RoleKind::Rollout &&
       config_.actors[actor.value()].role != RoleKind::Reference))
    return;
  for (const auto& [lease, held] : state_.leases) {
    if (held.actor != actor.value())
      continue;
    for (const std::uint64_t id : held.responses) {
      if (const auto group = state_.outstanding.find(group_of(id));
          group != state_.outstanding.end())
        set_stage(id, group->second.responses[id]);
    }
  }
}

void Auditor::recount_stages() {
  state_.waits.clear();
  for (const auto& [group, state] : state_.outstanding) {
    for (const auto& [id, r] : state.responses)
      set_stage(id, r);
  }
}

void Auditor::on_command(const command::Waiting& c) {
  using actors::RoleKind;
  if (c.actor.value() >= config_.actors.size())
    return violation(fmt::format("actor {} waits, which does not exist", c.actor));
  const RoleKind role = config_.actors[c.actor.value()].role;
  if (role == RoleKind::Reference || role == RoleKind::Reward)
    state_.waits.said(c);
  if (role == RoleKind::Trainer && c.state == actors::CardState::WaitData)
    check_trainer_waits(c.cause);
  // Gradients of other groups, and the way to the cards and back, change nothing of what it lacks.
  if (role == RoleKind::Trainer && c.cause.kind != WaitKind::Work && !c.cause.action)
    tail_.awaited = c.cause.kind == WaitKind::Groups;
}

void Auditor::check_tail() {
  const auto batch = static_cast<std::size_t>(config_.groups_per_update) *
                     static_cast<std::size_t>(std::max(1, config_.responses_per_group));
  const bool tail = tail_.awaited && tail_.counts && !ended_ &&
                    state_.waits.last_are_generated(std::max<std::size_t>(1, batch / 10));
  if (tail == tail_.since.has_value())
    return;
  if (tail)
    tail_.since = last_time_;
  else
    tail_.sum += last_time_ - *std::exchange(tail_.since, std::nullopt);
}

void Auditor::check_trainer_waits(const WaitCause& cause) {
  std::uint64_t unready = 0;
  for (const auto& [id, group] : state_.outstanding) {
    const bool ready = group.promised || group.in_update != 0 ||
                       std::ranges::all_of(group.responses, [&](const auto& r) {
                         return r.second.failed || is_whole(r.second);
                       });
    unready += ready ? 0 : 1;
    if (cause.kind == WaitKind::Groups && cause.group && cause.group->value() == id && ready)
      violation(fmt::format("the trainer waits for group {}, which is ready", id));
  }
  if (cause.kind == WaitKind::Groups && unready == 0)
    violation("the trainer waits for groups, but all are ready");
  if (cause.kind == WaitKind::Dispatch && unready > 0)
    violation(fmt::format("the trainer waits for dispatch, but {} groups are not ready", unready));
  if (cause.kind == WaitKind::RoleSwitch &&
      state_.outstanding.size() - unready < static_cast<std::size_t>(config_.groups_per_update))
    violation("the trainer waits for its cards, but has no complete batch");
}

void Auditor::check_waits() {
  const bool shared = std::ranges::any_of(config_.actors, [](const ActorSpec& actor) {
    return actor.takes_turns && actor.role == actors::RoleKind::Rollout;
  });
  const bool held = shared && (!state_.trainer_parked || !state_.visiting.empty());
  // From when to when an evaluation waits for engines, the log does not say.
  const bool evaluates = config_.evaluation.every > 0;
  note(state_.waits.check(config_.actors, {shared, held, evaluates}));
}

void Auditor::on_command(const command::Finish& c) {
  ended_ = true;
  if (!c.ok)
    return;
  if (!state_.outstanding.empty())
    violation("the run finished with success, but left groups outstanding");
  if (state_.version != config_.steps)
    violation("the run finished with success before its last step");
  note(state_.evaluation.finish(config_.steps));
}

}  // namespace temper::orchestrator
