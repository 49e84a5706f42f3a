#include "orchestrator/scheduler/dispatch/dispatcher.hpp"

#include <algorithm>
#include <limits>

namespace temper::orchestrator {
namespace {

/// Each engine's share of what is in flight and may still come, rounded up: while anything may
/// come, some engine has less.
std::int64_t even_share(const RunState& run, const CardSharing& sharing) {
  std::int64_t engines = 0;
  auto load = static_cast<std::int64_t>(run.saved.queue.ready(Task::Generate).size());
  for (const ActorId id : run.fleet.rollouts()) {
    if (!run.fleet.state(id).ready() || !sharing.may_generate(run, id))
      continue;
    if (sharing.old_weights_may_continue() &&
        run.fleet.state(id).version != run.saved.progress.version)
      continue;  // it takes nothing new
    ++engines;
    load += run.saved.queue.load(id).responses;
  }
  const OutstandingGroups& s = run.saved.outstanding;
  std::uint64_t groups = run.groups_to_admit();
  if (const auto batch = static_cast<std::uint64_t>(s.batch); !run.config.stragglers.dispatch_ahead)
    groups = std::min(groups, batch - std::min(batch, s.since_step));
  load += static_cast<std::int64_t>(groups) * run.config.responses_per_group;
  if (engines == 0)  // what is handed back may go to engines with older weights
    return sharing.old_weights_may_continue() ? std::numeric_limits<std::int64_t>::max() : 0;
  return (load + engines - 1) / engines;
}

enum class Work { New, Returned };

/// The least loaded engine that has room; newest weights first, so that no deadline is nearer than
/// needed.
std::optional<ActorId> engine_for(const RunState& run,
                                  const CardSharing& sharing,
                                  Work work,
                                  std::size_t responses,
                                  PolicyVersion at_least) {
  std::optional<ActorId> best;
  const std::int64_t most = run.config.stragglers.even_load
                                ? even_share(run, sharing)
                                : std::numeric_limits<std::int64_t>::max();
  for (const ActorId id : run.fleet.rollouts()) {
    const ActorState& a = run.fleet.state(id);
    if (!a.ready() || !a.has_kv || a.switching || !a.version || *a.version < at_least)
      continue;
    const bool current = *a.version == run.saved.progress.version;
    const bool may_continue = sharing.old_weights_may_continue() && work == Work::Returned;
    if (!sharing.may_generate(run, id) ||
        (run.fleet.spec(id).takes_turns && !current && !may_continue))
      continue;
    const std::int32_t busy = run.saved.queue.load(id).responses;
    if (busy >= most)
      continue;
    const std::int32_t all = run.load_of(id).responses;
    if (all > 0 && all + static_cast<std::int32_t>(responses) > run.fleet.spec(id).concurrency) {
      continue;
    }
    if (!best || *a.version > *run.fleet.state(*best).version ||
        (*a.version == *run.fleet.state(*best).version &&
         busy < run.saved.queue.load(*best).responses)) {
      best = id;
    }
  }
  return best;
}

void send(RunState& run,
          ActorId engine,
          GroupId group,
          std::vector<ResponseId> responses,
          std::optional<Draw> draw = {}) {
  const PolicyVersion version = *run.fleet.state(engine).version;
  const LeaseId lease = run.saved.queue.lease(
      Task::Generate, engine, responses, run.now + run.config.deadlines.generate);
  command::Dispatch command{engine, lease, group, version, std::move(responses), {}, draw};
  if (run.config.stragglers.keep_kv &&
      !run.saved.queue.row(command.responses.front())->segments.empty()) {
    for (const ResponseId r : command.responses)
      command.cached_on.push_back(run.saved.queue.row(r)->cached_on);
  }
  run.emit(std::move(command));
}

/// To an engine whose weights are not older than their group's v0, else the group would be staler
/// than its deadline says, nor than those that any of them was sampled with: a version never
/// regresses.
bool dispatch_one_returned(RunState& run, const CardSharing& sharing) {
  const auto& ready = run.saved.queue.ready(Task::Generate);
  if (ready.empty())
    return false;
  const GroupId group = run.saved.queue.group_of(*ready.begin());
  std::vector<ResponseId> responses;
  PolicyVersion newest = run.saved.queue.group(group)->dispatched;
  for (const ResponseId r : ready) {
    if (run.saved.queue.group_of(r) != group)
      break;
    responses.push_back(r);
    if (const auto& segments = run.saved.queue.row(r)->segments; !segments.empty())
      newest = std::max(newest, segments.back().version);
  }
  const auto engine = engine_for(run, sharing, Work::Returned, responses.size(), newest);
  if (!engine)
    return false;
  send(run, *engine, group, std::move(responses));
  return true;
}

}  // namespace

void Dispatcher::group_changed(const RunState& run, GroupId id) {
  const Group* group = run.saved.queue.group(id);
  if (group != nullptr && group->trainable)
    just_in_time_.trainable(id, run.now);
}

void Dispatcher::dispatch_returned(RunState& run, const CardSharing& sharing) const {
  while (!run.finished && !run.draining() && dispatch_one_returned(run, sharing)) {
  }
}

void Dispatcher::dispatch_new(RunState& run, const CardSharing& sharing) {
  run.held_until.reset();
  while (!run.finished && !run.draining() && dispatch_one(run, sharing)) {
  }
}

bool Dispatcher::dispatch_one(RunState& run, const CardSharing& sharing) {
  if (!run.wants_groups())
    return false;
  const auto engine = engine_for(run,
                                 sharing,
                                 Work::New,
                                 static_cast<std::size_t>(run.config.responses_per_group),
                                 PolicyVersion(0));
  if (!engine)
    return false;
  const PolicyVersion version = *run.fleet.state(*engine).version;
  if (!run.rule->admits(version, run.saved.queue, run.saved.outstanding) || may_wait(run))
    return false;
  const GroupId group(run.saved.next_group++);
  ++run.saved.progress.groups_dispatched;
  const ProblemPlan& plan = run.config.problems;
  std::optional<Draw> draw;
  if (!plan.sources.empty())
    draw = run.saved.problems.draw(plan, group, run.saved.progress.version.value());
  run.saved.queue.add_group(group, version, run.saved.problems.teacher(plan, group).value_or(0));
  run.saved.outstanding.add(version);
  just_in_time_.dispatched(group, run.now);
  send(run, *engine, group, run.saved.queue.live_responses(group), draw);
  return true;
}

/// Whether the trainer does not need another group yet; sets the time of the next check if so.
bool Dispatcher::may_wait(RunState& run) {
  if (run.config.admission != Admission::JustInTime ||
      (run.fleet.takes_turns() && !run.fleet.lends()))
    return false;
  if (run.evaluation_holds_up_training())  // nobody knows until when
    return false;
  const OutstandingGroups& s = run.saved.outstanding;
  // Those of the update under way are a batch; what is promised to the next one is ahead.
  const std::int64_t ahead =
      static_cast<std::int64_t>(s.outstanding_groups()) - (s.updating ? s.batch : 0);
  const auto due = just_in_time_.due(ahead, run.now);
  if (!due || *due <= run.now)
    return false;
  just_in_time_.held_back();
  run.held_until = *due;
  return true;
}

}  // namespace temper::orchestrator
