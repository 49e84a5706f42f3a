#include "study/machine/machine_actor.hpp"

#include "actors/protocol/counted.hpp"
#include "actors/protocol/weights.hpp"
#include "study/machine/machine_rollout.hpp"

#include <algorithm>
#include <set>

namespace temper::study {
namespace {

using actors::CardState;

MachineTask::Threads threads_of(const orchestrator::ActorSpec& slot) {
  return slot.cards.size() > 1 ? MachineTask::Threads::Team : MachineTask::Threads::One;
}

/// Handles commands one after the other, in the order of the messages.
class SequentialActor : public MachineActor {
 public:
  using MachineActor::MachineActor;
  std::optional<MachineTask> next() override {
    if (tasks_.empty())
      return std::nullopt;
    MachineTask task = tasks_.front()();
    tasks_.pop_front();
    return task;
  }

 protected:
  /// `make` is called when the command starts.
  void later(std::function<MachineTask()> make) { tasks_.push_back(std::move(make)); }
  /// A role switch that takes this many seconds.
  void later_switch(actors::SwitchAction action, double us) {
    later([this, action, us] {
      const MachineTask task{
          us * kMicro, world_.calibration.slowdowns.other, MachineTask::Threads::One, {}};
      const Duration takes = from_seconds(task.seconds);
      return shown(CardState::Switch, task, [action, takes](actors::Outbox& out) {
        actors::Switched done;
        done.action = action;
        done.cost.duration = takes;
        out.send(done);
      });
    });
  }

 private:
  std::deque<std::function<MachineTask()>> tasks_;
};

class MachineTrainer final : public SequentialActor {
 public:
  MachineTrainer(const MachineWorld& world, const orchestrator::ActorSpec& slot)
      : SequentialActor(world),
        times_(*world.calibration.with_threads(std::max<std::size_t>(1, slot.cards.size()))),
        threads_(threads_of(slot)) {}

  void start(actors::Outbox& out) override { out.send(actors::TrainerReady{weights()}); }

  Status on_message(const actors::IncomingMessage& message, actors::Outbox&) override {
    return actors::dispatch(
               message,
               [&](actors::CountedTrain work) {
                 const auto batch = std::make_shared<actors::CountedTrain>(std::move(work));
                 later([this, batch] { return update(*batch); });
                 later([this, batch] { return publish(*batch); });
               },
               [&](const actors::CountedPrepare& work) {
                 later([this, work] { return prepare(work); });
               },
               [&](const actors::SaveState& work) {
                 later([this, version = work.version] {
                   return shown(CardState::WeightSync,
                                one(world_.calibration.weights.save_us),
                                [version](actors::Outbox& out) {
                                  out.send(actors::StateSaved{version, ""});
                                });
                 });
               },
               [&](const actors::Switch& work) {
                 const bool leaves = work.action == actors::SwitchAction::OffloadOptimizer;
                 const SwitchTimes& t = world_.calibration.switches;
                 parked_ = parked_ || leaves;
                 later_switch(work.action, leaves ? t.offload_us : t.onload_us);
               })
        .value_or(Status());
  }

 private:
  MachineTask one(double us) const {
    return {us * kMicro, world_.calibration.slowdowns.other, MachineTask::Threads::One, {}};
  }

  /// Gradient work of the items that are not prepared.
  UpdateWork work_of(const std::vector<actors::CountedTrain::Item>& items) const {
    UpdateWork work;
    std::optional<GroupId> before;
    for (const auto& item : items) {
      if (prepared_.contains(item.group))
        continue;
      work.tokens += item.response.count();
      work.rows += std::max<std::int64_t>(0, item.response.count() - 1);
      if (std::exchange(before, item.group) != item.group)
        work.rows += item.prompt.count();
    }
    return work;
  }

  /// Time of the update's rows and tokens; the rest of an update is independent of them.
  MachineTask prepare(const actors::CountedPrepare& groups) {
    const double seconds =
        update_seconds(times_, work_of(groups.items)) - update_seconds(times_, {});
    for (const auto& item : groups.items)
      prepared_.insert(item.group);
    return shown(
        CardState::Train,
        {seconds, world_.calibration.slowdowns.update, threads_, {}},
        [lease = groups.lease](actors::Outbox& out) { out.send(actors::CountedPrepared{lease}); });
  }

  MachineTask update(const actors::CountedTrain& batch) {
    UpdateWork work = work_of(batch.items);
    prepared_.clear();
    work.minibatches = std::min<std::int64_t>(world_.config.algorithm.minibatches,
                                              world_.config.algorithm.groups_per_update);
    double seconds = update_seconds(times_, work);
    if (version_ == PolicyVersion(0))
      seconds += times_.update.first_us * kMicro;
    if (std::exchange(parked_, false))
      seconds += times_.update.resumed_us * kMicro;
    return shown(CardState::Train,
                 {seconds, world_.calibration.slowdowns.update, threads_, {}},
                 [](actors::Outbox&) {});
  }

  MachineTask publish(const actors::CountedTrain& batch) {
    actors::Trained trained{.lease = batch.lease, .groups = {}, .metrics = {}, .weights = {}};
    for (const auto& entry : batch.certificate.groups)
      trained.groups.push_back(entry.group);
    for (const auto& item : batch.items)
      trained.metrics.tokens += item.prompt + item.response;
    return shown(CardState::WeightSync,
                 one(world_.calibration.weights.export_us),
                 [this, trained = std::move(trained)](actors::Outbox& out) mutable {
                   version_ = temper::next(version_);
                   trained.weights = weights();
                   out.send(trained);
                 });
  }

  actors::WeightsHandle weights() const {
    actors::WeightsHandle handle;
    handle.version = version_;
    return handle;
  }

  const EngineTimes& times_;
  const MachineTask::Threads threads_;
  PolicyVersion version_;
  bool parked_ = false;         ///< The optimizer was offloaded since the last update.
  std::set<GroupId> prepared_;  ///< Groups whose gradients are kept.
};

class MachineReference final : public SequentialActor {
 public:
  MachineReference(const MachineWorld& world, const orchestrator::ActorSpec& slot)
      : SequentialActor(world),
        times_(*world.calibration.with_threads(std::max<std::size_t>(1, slot.cards.size()))),
        threads_(threads_of(slot)) {}

  Status on_message(const actors::IncomingMessage& message, actors::Outbox&) override {
    return actors::dispatch(
               message,
               [&](const actors::CountedScore& work) {
                 std::int64_t rows = -work.repeated.count() - std::ssize(work.lengths);
                 for (const Tokens length : work.lengths)
                   rows += length.count();
                 later([this, rows, lease = work.lease] { return pass(rows, lease); });
               },
               [&](const actors::Switch& work) {
                 const bool comes = work.action == actors::SwitchAction::OnloadReference;
                 first_ = first_ || comes;
                 later_switch(work.action,
                              comes ? world_.calibration.switches.reference_load_us : 0);
               })
        .value_or(Status());
  }

 private:
  MachineTask pass(std::int64_t rows, LeaseId lease) {
    double seconds = reference_seconds(times_, rows);
    if (std::exchange(first_, false))
      seconds += times_.reference.first_us * kMicro;
    return shown(CardState::Reference,
                 {seconds, world_.calibration.slowdowns.reference, threads_, {}},
                 [lease](actors::Outbox& out) { out.send(actors::CountedScored{lease}); });
  }

  const EngineTimes& times_;
  const MachineTask::Threads threads_;
  bool first_ = true;
};

class MachineReward final : public SequentialActor {
 public:
  MachineReward(const MachineWorld& world, const orchestrator::ActorSpec&)
      : SequentialActor(world) {}

  Status on_message(const actors::IncomingMessage& message, actors::Outbox&) override {
    if (!message.is<actors::CountedJudge>())
      return {};
    TEMPER_TRY(const auto work, message.decode<actors::CountedJudge>());
    later([this, lease = work.lease, responses = work.items.size()] {
      const RewardTimes& t = world_.calibration.reward;
      const double us = t.call_us + t.response_us * static_cast<double>(responses);
      return shown(CardState::Reward,
                   {us * kMicro, world_.calibration.slowdowns.other, MachineTask::Threads::One, {}},
                   [lease, responses](actors::Outbox& out) {
                     // Unequal rewards, so that no group is filtered for equal rewards.
                     actors::Judged judged{.lease = lease, .items = {}};
                     for (std::size_t i = 0; i < responses; ++i)
                       judged.items.push_back({i % 2 == 0 ? 1.0 : 0.0, {}});
                     out.send(judged);
                   });
    });
    return {};
  }
};

}  // namespace

std::unique_ptr<MachineActor> make_machine_actor(const MachineWorld& world,
                                                 const orchestrator::ActorSpec& slot) {
  switch (slot.role) {
    case actors::RoleKind::Rollout:
      return std::make_unique<MachineRollout>(world, slot);
    case actors::RoleKind::Trainer:
      return std::make_unique<MachineTrainer>(world, slot);
    case actors::RoleKind::Reference:
      return std::make_unique<MachineReference>(world, slot);
    case actors::RoleKind::Reward:
      break;
  }
  return std::make_unique<MachineReward>(world, slot);
}

}  // namespace temper::study
