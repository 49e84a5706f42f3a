#include "orchestrator/scheduler/lifecycle/lifecycle.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(60);
/// `deadlines.start` is doubled at most so often.
constexpr std::int32_t kMostDoublings = 3;
/// An actor that gets on with its start may take so many times `deadlines.start` for it.
constexpr std::int32_t kLongestStart = 20;
/// Of that deadline: a sign of progress is recorded once so much is over.
constexpr std::int32_t kWorthARecord = 4;

/// Before the restart that is number `restarts` in a row, from 1.
Duration pause_before(std::int32_t restarts) {
  if (restarts <= 1)
    return Duration(0);
  Duration pause = kFirstPause;
  for (std::int32_t i = 2; i < restarts && pause < kLongestPause; ++i)
    pause *= 2;
  return std::min(pause, kLongestPause);
}

/// Doubled after each start that took too long.
Duration start_limit(const RunState& run, ActorId actor) {
  if (run.fleet.spec(actor).attached)
    return run.config.deadlines.attach;
  return run.config.deadlines.start *
         (1 << std::min(run.fleet.state(actor).late_starts, kMostDoublings));
}

Time latest_start(const RunState& run, ActorId actor) {
  return run.fleet.state(actor).launched_at + kLongestStart * start_limit(run, actor);
}

void launch(RunState& run, ActorId actor, std::optional<Reason> reason = {}) {
  run.fleet.renew(actor, Life::Launching);
  ActorState& a = run.fleet.change(actor);
  a.launched_at = run.now;
  a.launch_deadline = run.now + start_limit(run, actor);
  a.first_lease = run.saved.queue.next_lease();
  a.busy_until = run.now;
  run.emit(command::Launch{actor, std::move(reason)});
}

/// Nobody attached. The slot stays free as long as others do the same work.
void wait_on(RunState& run, ActorId attached) {
  const ActorSpec& spec = run.fleet.spec(attached);
  const auto others = run.fleet.with_role(spec.role);
  if (std::ranges::any_of(others, [&](ActorId a) {
        return run.fleet.state(a).ready() && run.fleet.spec(a).does_work_of(spec);
      })) {
    run.fleet.change(attached).launch_deadline = run.now + run.config.deadlines.attach;
    return;
  }
  run.finish(Ending::Failed,
             Reason{.kind = ReasonKind::NobodyAttached,
                    .actor = attached,
                    .limit = run.config.deadlines.attach});
}

Reason deadline_passed(const RunState& run, const Overdue& missed) {
  const Deadlines& d = run.config.deadlines;
  Reason reason{.kind = ReasonKind::DeadlinePassed,
                .version = missed.version,
                .deadline = missed.deadline,
                .action = missed.action};
  switch (missed.deadline) {
    case DeadlineKind::Start:
      reason.limit = start_limit(run, missed.actor);
      if (const ActorState& a = run.fleet.state(missed.actor);
          a.launch_deadline >= latest_start(run, missed.actor)) {
        reason.deadline = DeadlineKind::LongestStart;
        reason.limit = latest_start(run, missed.actor) - a.launched_at;
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

Reason deadline_passed(const RunState& run, const Lease& lease) {
  using K = DeadlineKind;
  const Deadlines& d = run.config.deadlines;
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

}  // namespace

void Lifecycle::launch_all(RunState& run, std::int32_t rollbacks) {
  rollbacks_ = rollbacks;
  run.fleet = Fleet(run.config.actors, run.config.starts_at_once);
  run.withdrawn.clear();
  for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
    if (run.fleet.spec(ActorId(i)).away)
      continue;
    ActorState& a = run.fleet.change(ActorId(i));
    a.life = Life::Waiting;
    a.launch_at = run.now + pause_before(rollbacks_);
  }
  // The trainer's restarts are rollbacks, of which the new fleet knows nothing else.
  run.fleet.change(run.fleet.trainer()).late_starts = rollbacks_;
}

void Lifecycle::on_ready(RunState& run, const event::ActorReady& e) {
  ActorState& a = run.fleet.change(e.actor);
  if (a.life != Life::Launching)
    return;
  if (e.actor == run.fleet.trainer() && e.weights != run.saved.progress.version) {
    return run.finish(Ending::Failed,
                      Reason{.kind = ReasonKind::WrongWeights,
                             .actor = e.actor,
                             .version = e.weights,
                             .expected = run.saved.progress.version});
  }
  run.fleet.renew(e.actor, Life::Ready);
  a.ready_since = run.now;
}

void Lifecycle::on_down(RunState& run, const event::ActorDown& e) {
  if (e.permanent && is_first_start(run, e.actor)) {
    run.fleet.change(e.actor).life = Life::Down;
    Reason reason = reason_with(ReasonKind::CannotStart, e.reason);
    reason.actor = e.actor;
    return run.finish(Ending::Failed, std::move(reason));
  }
  lose(run,
       e.actor,
       reason_with(e.lied ? ReasonKind::ProtocolViolation : ReasonKind::WorkerLost, e.reason));
}

void Lifecycle::on_loading(RunState& run, const event::ActorLoading& e) const {
  ActorState& a = run.fleet.change(e.actor);
  if (a.life == Life::Launching) {
    a.launch_deadline =
        std::max(a.launch_deadline,
                 std::min(run.now + start_limit(run, e.actor), latest_start(run, e.actor)));
  }
}

void Lifecycle::on_checkpoint(RunState& run) {
  rollbacks_ = 0;
  for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
    ActorState& a = run.fleet.change(ActorId(i));
    if (a.ready())
      a.restarts = a.late_starts = 0;
  }
}

void Lifecycle::start_waiting(RunState& run) const {
  if (run.finished)
    return;
  while (const auto actor = run.fleet.next_to_start(run.now))
    launch(run, *actor);
}

void Lifecycle::expire(RunState& run) {
  if (run.finished)
    return;
  while (const auto late = run.fleet.overdue(run.now)) {
    if (run.fleet.spec(late->actor).attached && late->deadline == DeadlineKind::Start) {
      wait_on(run, late->actor);
    } else {
      lose(run, late->actor, deadline_passed(run, *late));
    }
    if (run.finished)
      return;
  }
  while (const auto id = run.saved.queue.expired(run.now)) {
    const Lease lease = *run.saved.queue.find(*id);
    lose(run, lease.actor, deadline_passed(run, lease));
    if (run.finished)
      return;
  }
  while (const auto id = run.evaluation.table().expired(run.now)) {
    const Lease lease = *run.evaluation.table().find(*id);
    Reason reason = deadline_passed(run, lease);
    reason.evaluation = true;
    lose(run, lease.actor, std::move(reason));
    if (run.finished)
      return;
  }
  if (run.trainer.saving && *run.trainer.saving <= run.now) {
    run.finish(Ending::Failed,
               Reason{.kind = ReasonKind::DeadlinePassed,
                      .actor = run.fleet.trainer(),
                      .deadline = DeadlineKind::Checkpoint,
                      .limit = run.config.deadlines.checkpoint});
  } else if (run.drain_deadline && *run.drain_deadline <= run.now) {
    run.finish(Ending::Stopped,
               Reason{.kind = ReasonKind::DeadlinePassed,
                      .deadline = DeadlineKind::Drain,
                      .limit = run.config.deadlines.drain});
  }
}

void Lifecycle::lose(RunState& run, ActorId actor, Reason reason) {
  ActorState& a = run.fleet.change(actor);
  if (a.life == Life::Down || a.life == Life::Waiting)
    return;
  run.saved.queue.revoke_all(actor);
  run.evaluation.table().revoke_all(actor);
  std::erase_if(run.withdrawn,
                [&](ResponseId r) { return run.saved.queue.ready(Task::Generate).contains(r); });
  if (actor == run.fleet.trainer())
    return lose_trainer(run, std::move(reason));
  if (run.fleet.spec(actor).away) {
    const bool told = a.retiring;
    run.fleet.renew(actor, Life::Down);
    if (!told)
      run.emit(command::Retire{actor});
    return;
  }
  if (a.ready() && run.now - a.ready_since >= run.config.restarts_forgiven_after)
    a.restarts = a.late_starts = 0;
  if (a.restarts >= run.config.max_restarts) {
    a.life = Life::Down;
    return run.finish(Ending::Failed,
                      Reason{.kind = ReasonKind::TooManyLosses,
                             .actor = actor,
                             .count = static_cast<std::uint64_t>(a.restarts) + 1},
                      std::move(reason));
  }
  ++a.restarts;
  if (a.life == Life::Launching && a.launch_deadline <= run.now)
    ++a.late_starts;
  run.fleet.renew(actor, Life::Waiting);
  a.launch_at = run.now + pause_before(a.restarts);
  if (run.fleet.next_to_start(run.now) == actor)
    return launch(run, actor, std::move(reason));
  run.emit(command::Discard{actor, std::move(reason), a.launch_at});
}

void Lifecycle::lose_trainer(RunState& run, Reason reason) {
  run.fleet.change(run.fleet.trainer()).life = Life::Down;
  if (rollbacks_ >= run.config.max_restarts) {
    return run.finish(Ending::Failed,
                      Reason{.kind = ReasonKind::TooManyLosses,
                             .actor = run.fleet.trainer(),
                             .count = static_cast<std::uint64_t>(rollbacks_) + 1},
                      std::move(reason));
  }
  run.finished = true;  // this scheduler's future is void; the driver resumes
  reason.actor = run.fleet.trainer();
  run.emit(command::Rollback{std::move(reason)});
}

bool Lifecycle::wants_to_know_that_loads(const RunState& run, ActorId actor, Time now) const {
  if (run.fleet.spec(actor).attached || run.fleet.state(actor).life != Life::Launching)
    return false;
  const Duration limit = start_limit(run, actor);
  const Time deadline = run.fleet.state(actor).launch_deadline;
  return deadline - now <= limit - limit / kWorthARecord && deadline < latest_start(run, actor);
}

/// By this orchestrator, of a worker that it starts itself: no start of it was tried before.
bool Lifecycle::is_first_start(const RunState& run, ActorId actor) const {
  const ActorState& a = run.fleet.state(actor);
  return a.life == Life::Launching && a.restarts == 0 && rollbacks_ == 0 &&
         !run.fleet.spec(actor).attached;
}

}  // namespace temper::orchestrator
