#include "orchestrator/scheduler/scheduler.hpp"

#include "core/msgpack.hpp"
#include "orchestrator/scheduler/dispatch/scoring.hpp"
#include "orchestrator/scheduler/lifecycle/scaling.hpp"
#include "orchestrator/scheduler/training/checkpoints.hpp"
#include "orchestrator/scheduler/training/publication.hpp"
#include "orchestrator/scheduler/training/steps.hpp"
#include "orchestrator/scheduler/view/waits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Most responses between the oldest group and the youngest: tables are made by their numbers.
constexpr std::uint64_t kWidestTable = std::uint64_t{1} << 26;

/// Names the first field that no run with this configuration can produce; empty if the state is
/// plausible.
std::string impossible_field(const SavedState& saved, const SchedulerConfig& config) {
  const DistQueue& queue = saved.queue;
  const std::uint64_t each = ResponseIds(config.responses_per_group).per_group();
  if (saved.outstanding.batch != config.groups_per_update || queue.ids().per_group() != each)
    return fmt::format(
        "updates of {} groups of {}", saved.outstanding.batch, queue.ids().per_group());
  if (auto what = saved.problems.impossible_field(config.problems); !what.empty())
    return what;
  if (queue.groups().empty())
    return {};
  const std::uint64_t first = queue.groups().begin()->first.value();
  const std::uint64_t last = queue.groups().rbegin()->first.value();
  if (last >= std::min(saved.next_group, std::numeric_limits<std::uint64_t>::max() / each) ||
      last - first >= kWidestTable / each)
    return fmt::format("groups {} to {} of {}", first, last, saved.next_group);
  for (const auto& [id, group] : queue.groups()) {
    if (group.rows.size() != each)
      return fmt::format("group {} of {} responses", id, group.rows.size());
    if (!saved.problems.teacher(config.problems, id))
      return fmt::format("group {} without a problem", id);
  }
  return {};
}

}  // namespace

Commands Scheduler::on(const Event& event, Time now) {
  TEMPER_CHECK(now >= run_.now, "time decreased");
  run_.now = now;
  run_.out.clear();
  if (run_.finished) {
    if (const auto* activity = std::get_if<event::Activity>(&event))
      handle(*activity);
    return {};
  }
  std::visit([this](const auto& e) { handle(e); }, event);
  if (!std::holds_alternative<event::Activity>(event))
    move_everything();
  for (const Command& command : run_.out) {
    if (const auto* left = std::get_if<command::Release>(&command))
      dispatcher_.group_left(left->group);
  }
  return std::move(run_.out);
}

/// The fixed order: what frees resources before what uses them, and waits last.
void Scheduler::move_everything() {
  lifecycle_.expire(run_);
  lifecycle_.start_waiting(run_);
  evict(run_);
  evaluations_.advance(run_);
  checkpoint_or_end(run_);
  sharing_.drive(run_);
  begin_step();
  prepare(run_, sharing_);
  publish_weights(run_, sharing_);
  dispatcher_.dispatch_returned(run_, sharing_);
  evaluations_.dispatch(run_, sharing_);
  dispatcher_.dispatch_new(run_, sharing_);
  sharing_.drive(run_);
  dispatcher_.migrate(run_, sharing_);
  sharing_.call_references(run_);
  const Deadlines& limits = run_.config.deadlines;
  score(run_, sharing_, Task::Reference, actors::RoleKind::Reference, limits.reference);
  score(run_, sharing_, Task::Reward, actors::RoleKind::Reward, limits.reward);
  evaluations_.judge(run_, sharing_);
  retire_removed(run_);
  report_waits(run_, sharing_);
}

std::optional<Time> Scheduler::next_deadline() const {
  if (run_.finished)
    return std::nullopt;
  std::optional<Time> earliest;
  for (const auto& t : {run_.fleet.next_deadline(),
                        run_.saved.queue.next_deadline(),
                        run_.evaluation.table().next_deadline(),
                        run_.trainer.saving,
                        run_.drain_deadline,
                        run_.held_until}) {
    if (t && *t != Time::max())
      earliest = earliest ? std::min(*earliest, *t) : *t;
  }
  return earliest;
}

std::string Scheduler::snapshot() const {
  return encode(run_.saved);
}

Result<Scheduler> Scheduler::restored(const SchedulerConfig& config, std::string_view snapshot) {
  Scheduler scheduler;
  RunState& run = scheduler.run_;
  run.configure(config);
  if (!snapshot.empty()) {
    const double bound = run.saved.outstanding.bound;
    TEMPER_TRY(run.saved, decode<SavedState>(snapshot));
    if (const auto what = impossible_field(run.saved, config); !what.empty())
      return corrupt("the checkpoint belongs to another run: its scheduler state has " + what);
    run.saved.outstanding.bound = bound;  // the run may have been resumed with another
    run.saved.queue.set_credits(run.credits());
    run.saved.queue.set_teachers(config.problems.teacher_count());
    for (const auto& [id, group] : run.saved.queue.groups())
      run.saved.queue.set_teacher(id, *run.saved.problems.teacher(config.problems, id));
    run.saved.queue.rebuild();
  }
  return scheduler;
}

bool Scheduler::may_say(ActorId actor, std::uint32_t tag) const {
  return actors::may_say(run_.fleet.spec(actor).role, stage_of(actor), tag);
}

// --- Events

void Scheduler::handle(const event::Started& e) {
  run_.configure(*e.config);
  launch_all(0);
}

void Scheduler::handle(const event::Resumed& e) {
  run_.trainer = TrainerWork();
  run_.trainer.saved = run_.saved.progress.version;
  run_.drain_deadline.reset();
  run_.held_until.reset();
  run_.stop_requested = false;
  run_.rewarded = run_.saved.progress.version > PolicyVersion();
  start_over(run_, e.lost);
  launch_all(e.rollbacks);
}

void Scheduler::launch_all(std::int32_t rollbacks) {
  lifecycle_.launch_all(run_, rollbacks);
  sharing_ = CardSharing(run_);
  dispatcher_ = Dispatcher(run_.config);
  evaluations_ = Evaluations();
}

void Scheduler::handle(const event::Trained& e) {
  if (on_trained(run_, e))
    dispatcher_.step_ends(run_.now);
}

void Scheduler::handle(const event::TensorsLost& e) {
  if (on_tensors_lost(run_, e))
    dispatcher_.step_canceled(run_.now);
}

void Scheduler::begin_step() {
  const bool busy = run_.trainer.training.has_value();
  train(run_, sharing_);
  if (!busy && run_.trainer.training)
    dispatcher_.step_begins(run_.now);
}

void Scheduler::handle(const event::Prepared& e) {
  on_prepared(run_, e);
}

void Scheduler::lose_if(ActorId actor, std::optional<Reason> reason) {
  if (reason)
    lifecycle_.lose(run_, actor, *std::move(reason));
}

void Scheduler::handle(const event::WeightsStaged& e) {
  lose_if(e.actor, on_staged(run_, e));
}

void Scheduler::handle(const event::WeightsCommitted& e) {
  lose_if(e.actor, on_committed(run_, e));
}

void Scheduler::handle(const event::Switched& e) {
  lose_if(e.actor, sharing_.on_switched(run_, e));
}

void Scheduler::handle(const event::CheckpointSaved& e) {
  if (on_saved(run_, e))
    lifecycle_.on_checkpoint(run_);
}

void Scheduler::handle(const event::Activity& e) {
  Time& until = run_.fleet.change(e.actor).busy_until;
  for (const actors::Span& span : e.spans)
    until = std::max(until, span.end);
}

void Scheduler::handle(const event::Scaled& e) {
  on_scaled(run_, e);
}

void Scheduler::handle(const event::StopRequested&) {
  on_stop_requested(run_);
}

void Scheduler::handle(const event::Aborted& e) {
  run_.finish(e.stopped ? Ending::Stopped : Ending::Failed,
              reason_with(ReasonKind::Aborted, e.reason));
}

}  // namespace temper::orchestrator
