// The driver of virtual time, on hardware that fails, and on checkpoints.
#include "orchestrator/run/virtual/own_time.hpp"
#include "orchestrator/run/virtual/simulated_roles.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {

Status VirtualDriver::plan_faults() {
  TEMPER_TRY(auto plan, FaultPlan::of(options_.pipeline));
  if (!plan)
    return {};
  if (!host_->can_lose() || content_) {
    return invalid_input(
        "simulation.faults: hardware fails only in runs with `--driver in-process` whose work is "
        "counted (policy: synthetic)");
  }
  hardware_.emplace(Hardware{
      *std::move(plan),
      HostPool(options_.pipeline.config.simulation.faults, cluster_shape(options_.pipeline))});
  return {};
}

/// When hardware fails next, cards can be used that somebody waits for, or a silence ends.
std::optional<Time> VirtualDriver::next_change() const {
  std::optional<Time> next = hardware_ ? hardware_->plan.next() : std::nullopt;
  for (const auto* times : {&waits_for_cards_, &silent_from_}) {
    for (const auto& [actor, at] : *times)
      next = std::min(next.value_or(Time::max()), at);
  }
  return next;
}

/// All that is due now.
void VirtualDriver::change_hardware() {
  while (!outcome_ && hardware_->plan.next() && *hardware_->plan.next() <= now_)
    fail(hardware_->plan.take());
  give_up_silent();
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
  log_.warning("hardware fails", {{"what", describe_fault(fault)}});
  const bool of_processes = !options_.pipeline.simulation;
  if (fault.kind == FaultKind::Stop || fault.kind == FaultKind::Slow ||
      (fault.kind == FaultKind::Link && of_processes))
    return hinder(fault);
  lose_to(on_cards(scheduler_config_.actors, stopped), describe_fault(fault));
}

/// Processes whose link is cut stand still here: what they do meanwhile is of no use before it is
/// mended.
void VirtualDriver::hinder(const Fault& fault) {
  const Duration length = fault.kind == FaultKind::Link
                              ? options_.pipeline.config.simulation.faults.link_repair
                              : fault.length;
  const std::int64_t times = fault.kind == FaultKind::Slow ? fault.times : OwnTime::kStands;
  const Duration patience = options_.pipeline.config.transport.heartbeat_timeout;
  const CardId card(static_cast<std::uint32_t>(fault.index));
  for (const ActorId actor : on_cards(scheduler_config_.actors, {card})) {
    if (times == OwnTime::kStands && !launched_[actor.value()])
      continue;
    host_->hinder(actor, now_, times, now_ + length);
    next_events_.set(actor.value(), host_->next_event(actor));
    if (times == OwnTime::kStands && length > patience)
      silent_from_.try_emplace(actor, now_ + patience);
  }
}

void VirtualDriver::give_up_silent() {
  std::vector<ActorId> lost;
  for (const auto& [actor, at] : silent_from_) {
    if (at <= now_)
      lost.push_back(actor);
  }
  const Duration silence = options_.pipeline.config.transport.heartbeat_timeout;
  if (!lost.empty())
    lose_to(lost, fmt::format("silent for {}", to_text(silence)));
}

/// Those of them that are there.
void VirtualDriver::lose_to(const std::vector<ActorId>& actors, const std::string& why) {
  std::vector<ActorId> lost;
  for (const ActorId actor : actors) {
    if (launched_[actor.value()])
      lost.push_back(actor);
  }
  for (const ActorId actor : lost)
    lose(actor);
  const ActorId trainer = scheduler_.fleet().trainer();
  if (std::ranges::find(lost, trainer) != lost.end())
    lost = {trainer};  // with it all others are started anew
  for (const ActorId actor : lost)
    post(event::ActorDown{actor, why});
}

/// Nothing of it remains, and nothing reaches it.
void VirtualDriver::lose(ActorId actor) {
  host_->lose(actor, now_);
  silent_from_.erase(actor);
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
  silent_from_.clear();
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
