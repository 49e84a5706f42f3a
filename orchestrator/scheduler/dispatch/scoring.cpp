#include "orchestrator/scheduler/dispatch/scoring.hpp"

#include <algorithm>
#include <optional>

namespace temper::orchestrator {
namespace {

/// While the trainer waits, the reference scores so many batches in place of one.
constexpr std::size_t kUrgentBatches = 8;

/// What the actor may get of a task: a reference, responses of its teacher.
const ResponseSet& ready_for(const RunState& run, Task task, ActorId actor) {
  return task == Task::Reference
             ? run.saved.queue.ready_for(run.fleet.spec(actor).teacher.value_or(0))
             : run.saved.queue.ready(task);
}

/// Responses that a time-shared reference scores at once. Nothing more comes during its turn, so
/// its share of all that is ready for its teacher, if that is more than a batch; but not more than
/// a part.
std::size_t batch_of_turn(const RunState& run,
                          ActorId reference,
                          std::size_t batch,
                          std::size_t ready,
                          std::optional<std::int64_t> part) {
  const ActorSpec& spec = run.fleet.spec(reference);
  const auto references = static_cast<std::size_t>(
      std::ranges::count_if(run.fleet.turning_references(),
                            [&](ActorId id) { return run.fleet.spec(id).does_work_of(spec); }));
  const std::size_t share = std::max(batch, (ready + references - 1) / references);
  if (!part)
    return share;
  return std::min(share, static_cast<std::size_t>(*part * run.config.responses_per_group));
}

}  // namespace

void score(RunState& run,
           const CardSharing& sharing,
           Task task,
           actors::RoleKind role,
           Duration deadline) {
  if (run.finished)
    return;
  for (const ActorId id : run.fleet.with_role(role)) {
    if (run.saved.queue.ready(task).empty())
      return;
    const ResponseSet& ready = ready_for(run, task, id);
    if (ready.empty() || !sharing.may_score(run, id) || run.saved.queue.load(id).leases > 1)
      continue;
    auto full = full_batch(run, task, ready);
    const auto part = run.fleet.spec(id).takes_turns ? sharing.part_size(run) : std::nullopt;
    if (run.fleet.spec(id).takes_turns)
      full = batch_of_turn(run, id, full, ready.size(), part);
    // One batch at work and at most one behind it; the second only when full, so that batches grow
    // while an actor is busy. None behind a part, after which the turn may end.
    const auto has_room = [&] {
      const std::int32_t leases = run.saved.queue.load(id).leases;
      return leases == 0 || (leases == 1 && !part && ready.size() >= full);
    };
    while (!ready.empty() && has_room()) {
      std::vector<ResponseId> responses;
      responses.reserve(std::min(full, ready.size()));
      for (auto it = ready.begin(); it != ready.end() && responses.size() < full; ++it) {
        responses.push_back(*it);
      }
      const LeaseId lease = run.saved.queue.lease(task, id, responses, run.now + deadline);
      if (task == Task::Reference) {
        run.emit(command::ScoreReference{id, lease, std::move(responses)});
      } else {
        run.emit(command::Judge{id, lease, std::move(responses)});
      }
    }
  }
}

std::size_t full_batch(const RunState& run, Task task) {
  return full_batch(run, task, run.saved.queue.ready(task));
}

std::size_t full_batch(const RunState& run, Task task, const ResponseSet& ready) {
  const auto full = static_cast<std::size_t>(
      task == Task::Reward ? std::min(run.config.score_batch, run.config.judge_batch)
                           : run.config.score_batch);
  if (!run.config.stragglers.deadline_first || task != Task::Reference || run.trainer.training)
    return full;
  const auto needed = run.urgent();
  if (!needed)
    return full;
  std::size_t waited_for = 0;
  for (const ResponseId r : ready) {  // oldest first
    if (run.saved.queue.group(run.saved.queue.group_of(r))->age_from() > *needed ||
        waited_for == full)
      break;
    ++waited_for;
  }
  return waited_for > 0 ? waited_for : std::max<std::size_t>(1, full / kUrgentBatches);
}

}  // namespace temper::orchestrator
