// The scheduler's part in gradients that are computed before the batch is whole
// (stragglers.prepare): groups that are there are promised to the next update, and the trainer
// computes their gradients while others are still generated. The update then takes the rest.
#include "orchestrator/scheduler/scheduler.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Parts of a batch: fewer groups than one of them are not worth a pass of their own.
constexpr std::int64_t kParts = 16;

}  // namespace

std::int64_t Scheduler::least_to_prepare() const {
  return std::max<std::int64_t>(1, config_.groups_per_update / kParts);
}

/// Nothing is promised where the cards would be given away before the update.
void Scheduler::prepare() {
  const bool stays = switch_.phase() == SwitchPhase::Separate || fleet_.lends() || one_by_one();
  if (!config_.stragglers.prepare || !stays || finished_ || training_ || preparing_ || saving_ ||
      draining() || !switch_.allows_training())
    return;
  const ActorId trainer = fleet_.trainer();
  if (!fleet_.state(trainer).ready() || fleet_.state(trainer).switching)
    return;
  const std::int64_t most =
      policy_->may_promise(stored_.queue.trainable_by_version(), stored_.standing);
  if (most < least_to_prepare())
    return;
  std::vector<GroupId> groups;
  for (auto it = stored_.queue.trainable().begin(); std::ssize(groups) < most; ++it)
    groups.push_back(it->second);
  command::Prepare command{trainer, {}, stored_.progress.version, {}};
  for (const GroupId g : groups) {
    ++stored_.standing.in_training[stored_.queue.group(g)->age_from()];
    ++stored_.standing.prepared;
    std::ranges::copy(stored_.queue.live_responses(g), std::back_inserter(command.responses));
  }
  command.lease =
      stored_.queue.lease(Task::Train, trainer, command.responses, now_ + config_.deadlines.train);
  preparing_ = command.lease;
  prepared_.push_back(command.lease);
  emit(std::move(command));
}

/// Its groups stay with the trainer until the update; that they wait for it has no deadline of its
/// own, since all that the update waits for has.
void Scheduler::handle(const event::Prepared& e) {
  if (preparing_ != e.lease)
    return;
  preparing_.reset();
  stored_.queue.extend(e.lease, Time::max());
}

void Scheduler::note_trainable(GroupId id) {
  const Group* group = stored_.queue.group(id);
  if (group != nullptr && group->trainable)
    just_in_time_.trainable(id, now_);
}

}  // namespace temper::orchestrator
