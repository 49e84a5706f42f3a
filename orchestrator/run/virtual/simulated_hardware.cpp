#include "orchestrator/run/virtual/simulated_hardware.hpp"

#include "orchestrator/run/virtual/simulated_roles.hpp"
#include "orchestrator/run/virtual/slowdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {

SimulatedHardware::SimulatedHardware(const ResolvedPipeline& pipeline,
                                     std::optional<FaultPlan> plan,
                                     RunCore& core,
                                     SimulatedFleet& fleet,
                                     const Log& log)
    : pipeline_(pipeline), core_(core), fleet_(fleet), log_(log) {
  if (plan) {
    failures_.emplace(Failures{
        *std::move(plan), HostPool(pipeline.config.simulation.faults, cluster_shape(pipeline))});
  }
}

// --- Launches

void SimulatedHardware::execute(const command::Launch& c) {
  if (fleet_.is_launched(c.actor))
    return give_up(c.actor, c.reason);
  const Time from = failures_ ? failures_->hosts.usable_from(core_.actor(c.actor).cards) : Time{};
  if (from > core_.now())
    waits_for_cards_[c.actor] = from;
  else
    start(c.actor);
}

void SimulatedHardware::execute(const command::Discard& c) {
  if (fleet_.is_launched(c.actor))
    return give_up(c.actor, c.reason);
  waits_for_cards_.erase(c.actor);  // its hardware failed; a Launch follows
}

void SimulatedHardware::give_up(ActorId actor, const std::optional<Reason>& reason) {
  core_.fail(fmt::format("{}: {}; a simulated actor would only do the same again",
                         core_.actor(actor).name,
                         core_.text(reason)));
}

void SimulatedHardware::start(ActorId actor) {
  const ActorSpec& spec = core_.actor(actor);
  actors::RoleConfig role = simulated_role_config(pipeline_, spec);
  if (spec.role == actors::RoleKind::Trainer)
    role.version = start_version_;
  if (Status launched = fleet_.launch(actor, role); !launched)
    core_.fail(launched.error().context);
}

// --- Failures

void SimulatedHardware::skip_until(Time now) {
  while (failures_ && failures_->plan.next() && *failures_->plan.next() <= now)
    failures_->hosts.fail(failures_->plan.take());
}

std::optional<Time> SimulatedHardware::next_change() const {
  std::optional<Time> next = failures_ ? failures_->plan.next() : std::nullopt;
  for (const auto* times : {&waits_for_cards_, &silent_until_}) {
    for (const auto& [actor, at] : *times)
      next = std::min(next.value_or(Time::max()), at);
  }
  return next;
}

void SimulatedHardware::change(Time now) {
  while (!core_.finished() && failures_->plan.next() && *failures_->plan.next() <= now)
    fail(failures_->plan.take(), now);
  lose_silent(now);
  const std::map<ActorId, Time> waiting = std::exchange(waits_for_cards_, {});
  for (const auto& [actor, from] : waiting) {
    // A later failure may have put it off.
    const Time usable = failures_->hosts.usable_from(core_.actor(actor).cards);
    if (usable > now)
      waits_for_cards_[actor] = usable;
    else
      start(actor);
  }
}

void SimulatedHardware::fail(const Fault& fault, Time now) {
  const std::set<CardId> stopped = failures_->hosts.fail(fault);
  log_.warning("hardware fails", {{"what", describe_fault(fault)}});
  const bool of_processes = !pipeline_.simulation;
  if (fault.kind == FaultKind::Stop || fault.kind == FaultKind::Slow ||
      (fault.kind == FaultKind::Link && of_processes))
    return slow_down(fault, now);
  lose_launched(on_cards(core_.config().actors, stopped), describe_fault(fault), now);
}

/// A process whose link is cut stands still here: its work is of no use before the link is
/// repaired.
void SimulatedHardware::slow_down(const Fault& fault, Time now) {
  const Duration length =
      fault.kind == FaultKind::Link ? pipeline_.config.simulation.faults.link_repair : fault.length;
  const std::int64_t times = fault.kind == FaultKind::Slow ? fault.times : Slowdown::kStops;
  const Duration patience = pipeline_.config.transport.heartbeat_timeout;
  const CardId card(static_cast<std::uint32_t>(fault.index));
  for (const ActorId actor : on_cards(core_.config().actors, {card})) {
    if (times == Slowdown::kStops && !fleet_.is_launched(actor))
      continue;
    fleet_.slow_down(actor, now, times, now + length);
    if (times == Slowdown::kStops && length > patience)
      silent_until_.try_emplace(actor, now + patience);
  }
}

void SimulatedHardware::lose_silent(Time now) {
  std::vector<ActorId> lost;
  for (const auto& [actor, at] : silent_until_) {
    if (at <= now)
      lost.push_back(actor);
  }
  const Duration silence = pipeline_.config.transport.heartbeat_timeout;
  if (!lost.empty())
    lose_launched(lost, fmt::format("silent for {}", to_text(silence)), now);
}

void SimulatedHardware::lose_launched(const std::vector<ActorId>& actors,
                                      const std::string& why,
                                      Time now) {
  std::vector<ActorId> lost;
  for (const ActorId actor : actors) {
    if (fleet_.is_launched(actor))
      lost.push_back(actor);
  }
  for (const ActorId actor : lost)
    lose(actor, now);
  const ActorId trainer = core_.state().fleet.trainer();
  if (std::ranges::find(lost, trainer) != lost.end())
    lost = {trainer};  // the rollback restarts all others
  for (const ActorId actor : lost)
    core_.post(event::ActorDown{actor, why});
}

void SimulatedHardware::lose(ActorId actor, Time now) {
  fleet_.lose(actor, now);
  silent_until_.erase(actor);
}

void SimulatedHardware::end_actors(Time now) {
  for (const ActorId actor : fleet_.launched())
    lose(actor, now);
  waits_for_cards_.clear();
  silent_until_.clear();
}

}  // namespace temper::orchestrator
