// Launches and restarts (docs/semantics.md, section 4.1). Who is lost is launched again: at once
// the first time, then after a pause that doubles, and only so many start at the same time. All of
// it follows from the events and their times, so that a replay does the same.
#include "orchestrator/scheduler/scheduler.hpp"

#include <algorithm>

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

}  // namespace

void Scheduler::launch_all() {
  fleet_ = Fleet(config_.actors, config_.starts_at_once);
  switch_ = RoleSwitch(fleet_);
  const std::size_t lent = fleet_.turning_engines().size();
  lending_ = Lending(fleet_.rollouts().size() - lent,
                     lent,
                     std::int64_t{config_.groups_per_update} * config_.responses_per_group);
  forecast_ = LengthForecast();
  just_in_time_ = JustInTime(config_.groups_per_update);
  held_until_.reset();
  std::int64_t slots = 1;
  for (const ActorId id : fleet_.turning_engines())
    slots = std::max<std::int64_t>(slots, fleet_.spec(id).concurrency);
  shares_ = CardShares(config_.shares, config_.crowding, slots);
  withdrawn_.clear();
  for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
    if (fleet_.spec(ActorId(i)).away)
      continue;
    ActorState& a = fleet_.state(ActorId(i));
    a.life = Life::Waiting;
    a.launch_at = now_ + pause_before(rollbacks_);
  }
  // The trainer's restarts are rollbacks, of which the new fleet knows nothing else.
  fleet_.state(fleet_.trainer()).late_starts = rollbacks_;
}

/// Those whose pause is over, as far as there is room.
void Scheduler::start_waiting() {
  if (finished_)
    return;
  while (const auto actor = fleet_.next_to_start(now_))
    launch(*actor);
}

/// Doubled after each start that took too long.
Duration Scheduler::start_limit(ActorId actor) const {
  if (fleet_.spec(actor).attached)
    return config_.deadlines.attach;
  return config_.deadlines.start * (1 << std::min(fleet_.state(actor).late_starts, kMostDoublings));
}

void Scheduler::launch(ActorId actor, std::optional<Reason> reason) {
  fleet_.renew(actor, Life::Launching);
  ActorState& a = fleet_.state(actor);
  a.launched_at = now_;
  a.launch_deadline = now_ + start_limit(actor);
  a.first_lease = stored_.queue.next_lease();
  a.busy_until = now_;
  emit(command::Launch{actor, std::move(reason)});
}

Time Scheduler::latest_start(ActorId actor) const {
  return fleet_.state(actor).launched_at + kLongestStart * start_limit(actor);
}

bool Scheduler::wants_to_know_that_loads(ActorId actor, Time now) const {
  if (fleet_.spec(actor).attached || fleet_.state(actor).life != Life::Launching)
    return false;
  const Duration limit = start_limit(actor);
  const Time deadline = fleet_.state(actor).launch_deadline;
  return deadline - now <= limit - limit / kWorthARecord && deadline < latest_start(actor);
}

/// Of this process, of an actor that this process starts: no start of it has been tried before.
bool Scheduler::is_first_start(ActorId actor) const {
  const ActorState& a = fleet_.state(actor);
  return a.life == Life::Launching && a.restarts == 0 && rollbacks_ == 0 &&
         !fleet_.spec(actor).attached;
}

/// Nobody came. The place stays free as long as others do the same work.
void Scheduler::wait_on(ActorId attached) {
  const ActorSpec& spec = fleet_.spec(attached);
  const auto others = fleet_.with_role(spec.role);
  if (std::ranges::any_of(others, [this](ActorId a) { return fleet_.state(a).ready(); })) {
    fleet_.state(attached).launch_deadline = now_ + config_.deadlines.attach;
    return;
  }
  finish(Ending::Failed,
         Reason{.kind = ReasonKind::NobodyAttached,
                .actor = attached,
                .limit = config_.deadlines.attach});
}

void Scheduler::lose(ActorId actor, Reason reason) {
  ActorState& a = fleet_.state(actor);
  if (a.life == Life::Down || a.life == Life::Waiting)
    return;
  stored_.queue.revoke_all(actor);
  evaluation_.table().revoke_all(actor);
  std::erase_if(withdrawn_,
                [this](ResponseId r) { return stored_.queue.ready(Task::Generate).contains(r); });
  if (actor == fleet_.trainer())
    return lose_trainer(std::move(reason));
  if (fleet_.spec(actor).away) {
    const bool told = a.retiring;
    fleet_.renew(actor, Life::Down);
    if (!told)
      emit(command::Retire{actor});
    return;
  }
  if (a.ready() && now_ - a.ready_since >= config_.restarts_forgiven_after)
    a.restarts = a.late_starts = 0;
  if (a.restarts >= config_.max_restarts) {
    a.life = Life::Down;
    return finish(Ending::Failed,
                  Reason{.kind = ReasonKind::TooManyLosses,
                         .actor = actor,
                         .count = static_cast<std::uint64_t>(a.restarts) + 1},
                  std::move(reason));
  }
  ++a.restarts;
  if (a.life == Life::Launching && a.launch_deadline <= now_)
    ++a.late_starts;
  fleet_.renew(actor, Life::Waiting);
  a.launch_at = now_ + pause_before(a.restarts);
  if (fleet_.next_to_start(now_) == actor)
    return launch(actor, std::move(reason));
  emit(command::Discard{actor, std::move(reason), a.launch_at});
}

/// Its weights and optimizer are gone: everything since the last checkpoint is done again.
void Scheduler::lose_trainer(Reason reason) {
  fleet_.state(fleet_.trainer()).life = Life::Down;
  if (rollbacks_ >= config_.max_restarts) {
    return finish(Ending::Failed,
                  Reason{.kind = ReasonKind::TooManyLosses,
                         .actor = fleet_.trainer(),
                         .count = static_cast<std::uint64_t>(rollbacks_) + 1},
                  std::move(reason));
  }
  finished_ = true;  // this scheduler's future is void; the driver resumes
  reason.actor = fleet_.trainer();
  emit(command::Rollback{std::move(reason)});
}

/// The run has come to a checkpoint: what it took to come here does not count against those that
/// are at work. One that never starts is not forgiven.
void Scheduler::forgive_restarts() {
  rollbacks_ = 0;
  for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
    ActorState& a = fleet_.state(ActorId(i));
    if (a.ready())
      a.restarts = a.late_starts = 0;
  }
}

}  // namespace temper::orchestrator
