// The driver of virtual time, on hardware that fails, and on checkpoints.
#include "orchestrator/run/virtual/simulated_roles.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {

Status VirtualDriver::plan_faults() {
  if (!options_.pipeline.simulation)
    return {};
  const actors::SimulatedRun& run = *options_.pipeline.simulation;
  const actors::FaultConfig& faults = run.config.faults;
  if (!faults.any())
    return {};
  if (!host_->can_lose() || content_) {
    return invalid_input(
        "simulation.faults: hardware fails only in runs with `--driver in-process` whose work is "
        "counted (policy: synthetic)");
  }
  const PipelineConfig& config = options_.pipeline.config;
  const ClusterShape shape{config.placement.cards, run.cluster.cards_per_node, run.cluster.nodes};
  TEMPER_TRY(FaultPlan plan, FaultPlan::create(faults, shape, config.seed));
  hardware_.emplace(Hardware{std::move(plan), HostPool(faults, shape)});
  return {};
}

/// When hardware fails next, or cards can be used that somebody waits for.
std::optional<Time> VirtualDriver::next_change() const {
  std::optional<Time> next = hardware_ ? hardware_->plan.next() : std::nullopt;
  for (const auto& [actor, from] : waits_for_cards_)
    next = std::min(next.value_or(Time::max()), from);
  return next;
}

/// All that is due now.
void VirtualDriver::change_hardware() {
  while (!outcome_ && hardware_->plan.next() && *hardware_->plan.next() <= now_)
    fail(hardware_->plan.take());
  const std::map<ActorId, Time> waiting = std::exchange(waits_for_cards_, {});
  for (const auto& [actor, from] : waiting) {
    // What failed since then may have put it off.
    const Time usable = hardware_->hosts.usable_from(scheduler_config_.actors[actor.value()].cards);
    if (usable > now_) {
      waits_for_cards_[actor] = usable;
    } else if (Status started = start_actor(actor); !started) {
      return abort(started.error().context);
    }
  }
}

void VirtualDriver::fail(const Fault& fault) {
  const std::set<CardId> stopped = hardware_->hosts.fail(fault);
  std::vector<ActorId> lost;
  for (std::uint32_t i = 0; i < launched_.size(); ++i) {
    const std::vector<CardId>& cards = scheduler_config_.actors[i].cards;
    if (launched_[i] &&
        std::ranges::any_of(cards, [&](CardId card) { return stopped.contains(card); }))
      lost.emplace_back(i);
  }
  log_.warning("hardware failed", {{"what", describe_fault(fault)}, {"actors", lost.size()}});
  for (const ActorId actor : lost)
    lose(actor);
  const ActorId trainer = scheduler_.fleet().trainer();
  if (std::ranges::find(lost, trainer) != lost.end())
    lost = {trainer};  // with it all others are started anew
  for (const ActorId actor : lost)
    post(event::ActorDown{actor, describe_fault(fault)});
}

/// Nothing of it remains, and nothing reaches it.
void VirtualDriver::lose(ActorId actor) {
  host_->lose(actor);
  launched_[actor.value()] = false;
  has_mail_[actor.value()] = false;
  std::erase(addressed_, actor);
  next_events_.clear(actor.value());
}

Status VirtualDriver::start_actor(ActorId actor) {
  const ActorSpec& spec = scheduler_config_.actors[actor.value()];
  actors::RoleConfig role = simulated_role_config(options_.pipeline, spec);
  if (spec.role == actors::RoleKind::Trainer)
    role.version = checkpoint_.version;
  TEMPER_TRY_STATUS(host_->launch(actor, role));
  launched_[actor.value()] = true;
  address(actor);
  return {};
}

void VirtualDriver::keep_checkpoint(const Record& record, PolicyVersion version) {
  if (!hardware_ && options_.checkpoints.empty())
    return;
  checkpoint_ = {record.sequence, version, scheduler_.snapshot(), {}};
  rollbacks_ = 0;
  if (options_.checkpoints.empty())
    return;
  if (Status status = write_checkpoint(); !status)
    abort(status.error().context);
}

Status VirtualDriver::write_checkpoint() {
  const Checkpoints checkpoints(options_.checkpoints);
  TEMPER_TRY_STATUS(events_.check_named());
  TEMPER_TRY_STATUS(events_.sync());
  TEMPER_TRY(std::ignore, checkpoints.begin(checkpoint_.version));
  return checkpoints.complete(
      checkpoint_, events_.position(), options_.pipeline.config.checkpoint.keep);
}

/// All actors end; the run is as it was at its last checkpoint.
void VirtualDriver::go_back() {
  queue_.clear();
  for (std::uint32_t i = 0; i < launched_.size(); ++i) {
    if (launched_[i])
      lose(ActorId(i));
  }
  waits_for_cards_.clear();
  weights_.clear();
  auto restored = Scheduler::restored(scheduler_config_, checkpoint_.scheduler);
  if (!restored)
    return abort(restored.error().context);
  scheduler_ = *std::move(restored);
  queue_.push_back(event::Resumed{checkpoint_.sequence, ++rollbacks_});
  if (stops_ > 0)
    queue_.push_back(event::StopRequested{});  // what was asked of the run is asked of it still
}

}  // namespace temper::orchestrator
