#include "orchestrator/scheduler/training/steps.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace temper::orchestrator {

void train(RunState& run, const CardSharing& sharing) {
  if (run.finished || run.trainer.training || run.trainer.preparing || run.trainer.saving ||
      run.draining() || !sharing.trainer_may_work() || run.evaluation_holds_up_training())
    return;
  const ActorId trainer = run.fleet.trainer();
  if (!run.fleet.state(trainer).ready() || run.fleet.state(trainer).switching)
    return;
  const auto rest = run.select_batch();
  if (!rest)
    return;
  command::Train command;
  command.actor = trainer;
  command.certificate.step = run.saved.progress.version;
  command.certificate.bound = run.rule->guarantee(run.saved.outstanding)
                                  .value_or(std::numeric_limits<std::uint64_t>::max());
  for (const LeaseId lease : run.trainer.prepared) {
    for (const ResponseId r : run.saved.queue.find(lease)->responses) {
      if (const GroupId g = run.saved.queue.group_of(r);
          run.trainer.batch.empty() || run.trainer.batch.back() != g)
        run.trainer.batch.push_back(g);
    }
  }
  std::vector<ResponseId> leased;
  for (const GroupId g : *rest) {
    run.trainer.batch.push_back(g);
    ++run.saved.outstanding.in_training[run.saved.queue.group(g)->age_from()];
    std::ranges::copy(run.saved.queue.live_responses(g), std::back_inserter(leased));
  }
  std::ranges::sort(run.trainer.batch, {}, [&](GroupId g) {
    return std::pair(run.saved.queue.group(g)->age_from(), g);
  });
  for (const GroupId g : run.trainer.batch) {
    const Group& group = *run.saved.queue.group(g);
    command.certificate.groups.push_back({g, group.dispatched, group.counted_from});
    std::ranges::copy(run.saved.queue.live_responses(g), std::back_inserter(command.responses));
  }
  run.saved.outstanding.updating = true;
  command.lease = run.saved.queue.lease(
      Task::Train, trainer, std::move(leased), run.now + run.config.deadlines.train);
  run.trainer.training = command.lease;
  run.emit(std::move(command));
}

void prepare(RunState& run, const CardSharing& sharing) {
  if (!run.config.stragglers.prepare || !sharing.may_prepare() || run.finished ||
      run.trainer.training || run.trainer.preparing || run.trainer.saving || run.draining() ||
      !sharing.trainer_may_work())
    return;
  const ActorId trainer = run.fleet.trainer();
  if (!run.fleet.state(trainer).ready() || run.fleet.state(trainer).switching)
    return;
  const std::int64_t may =
      run.rule->may_promise(run.saved.queue.trainable_by_version(), run.saved.outstanding);
  if (may < run.least_to_prepare())
    return;
  const std::int64_t most = std::min(may, sharing.part_size(run).value_or(may));
  std::vector<GroupId> groups;
  for (auto it = run.saved.queue.trainable().begin(); std::ssize(groups) < most; ++it)
    groups.push_back(it->second);
  command::Prepare command{trainer, {}, run.saved.progress.version, {}};
  for (const GroupId g : groups) {
    ++run.saved.outstanding.in_training[run.saved.queue.group(g)->age_from()];
    ++run.saved.outstanding.prepared;
    std::ranges::copy(run.saved.queue.live_responses(g), std::back_inserter(command.responses));
  }
  command.lease = run.saved.queue.lease(
      Task::Train, trainer, command.responses, run.now + run.config.deadlines.train);
  run.trainer.preparing = command.lease;
  run.trainer.prepared.push_back(command.lease);
  run.emit(std::move(command));
}

bool on_trained(RunState& run, const event::Trained& e) {
  if (!run.trainer.training || e.lease != *run.trainer.training)
    return false;
  run.trainer.training.reset();
  const std::vector<GroupId> groups = std::exchange(run.trainer.batch, {});
  run.trainer.prepared.push_back(e.lease);
  for (const LeaseId lease : std::exchange(run.trainer.prepared, {})) {
    const Lease* held = run.saved.queue.find(lease);
    const std::vector<ResponseId> responses =
        held == nullptr ? std::vector<ResponseId>{} : held->responses;
    for (const ResponseId r : responses)
      run.saved.queue.commit(lease, r);
  }
  run.saved.progress.version = next(run.saved.progress.version);
  run.saved.progress.groups_trained += groups.size();
  run.saved.filtered_since_step = run.saved.failed_since_step = 0;
  for (const GroupId g : groups)
    run.release(g, Outcome::Trained);
  run.saved.outstanding.publish(run.saved.progress.version);
  return true;
}

bool on_tensors_lost(RunState& run, const event::TensorsLost& e) {
  const bool step = run.trainer.training == e.lease;
  if (!step && run.trainer.preparing != e.lease)
    return false;
  DistQueue& queue = run.saved.queue;
  OutstandingGroups& outstanding = run.saved.outstanding;
  std::set<GroupId> groups;
  for (const ResponseId r : queue.find(e.lease)->responses)
    groups.insert(queue.group_of(r));
  for (const GroupId g : groups) {
    const auto count = outstanding.in_training.find(queue.group(g)->age_from());
    if (--count->second == 0)
      outstanding.in_training.erase(count);
  }
  queue.revoke(e.lease);
  if (step) {
    run.trainer.training.reset();
    run.trainer.batch.clear();
    outstanding.updating = false;
  } else {
    run.trainer.preparing.reset();
    run.trainer.prepared.pop_back();
    outstanding.prepared -= static_cast<std::int32_t>(groups.size());
  }
  start_over(run, e.lost);
  return step;
}

void start_over(RunState& run, const std::vector<ResponseId>& lost) {
  DistQueue& queue = run.saved.queue;
  for (const ResponseId r : lost) {
    const Row* row = queue.row(r);
    if (row != nullptr && !row->failed && !queue.is_leased(r))
      queue.start_over(r);
  }
}

void on_prepared(RunState& run, const event::Prepared& e) {
  if (run.trainer.preparing != e.lease)
    return;
  run.trainer.preparing.reset();
  run.saved.queue.extend(e.lease, Time::max());
}

}  // namespace temper::orchestrator
