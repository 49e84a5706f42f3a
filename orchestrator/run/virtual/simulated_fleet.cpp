#include "orchestrator/run/virtual/simulated_fleet.hpp"

#include <algorithm>

namespace temper::orchestrator {

SimulatedFleet::SimulatedFleet(std::unique_ptr<ActorHost> host, std::size_t actors)
    : host_(std::move(host)), next_events_(actors), has_mail_(actors), launched_(actors) {}

std::vector<ActorId> SimulatedFleet::launched() const {
  std::vector<ActorId> all;
  for (std::uint32_t i = 0; i < launched_.size(); ++i) {
    if (launched_[i])
      all.emplace_back(i);
  }
  return all;
}

Status SimulatedFleet::launch(ActorId actor, const actors::RoleConfig& role) {
  TEMPER_TRY_STATUS(host_->launch(actor, role));
  launched_[actor.value()] = true;
  note_mail(actor);
  return {};
}

void SimulatedFleet::lose(ActorId actor, Time now) {
  host_->lose(actor, now);
  launched_[actor.value()] = false;
  has_mail_[actor.value()] = false;
  std::erase(addressed_, actor);
  next_events_.clear(actor.value());
}

void SimulatedFleet::slow_down(ActorId actor, Time now, std::int64_t times, Time until) {
  host_->slow_down(actor, now, times, until);
  next_events_.set(actor.value(), host_->next_event(actor));
}

void SimulatedFleet::note_mail(ActorId actor) {
  if (!has_mail_[actor.value()])
    addressed_.push_back(actor);
  has_mail_[actor.value()] = true;
}

SimulatedFleet::Acted SimulatedFleet::take_mail(Time now) {
  acting_.swap(addressed_);
  addressed_.clear();
  std::sort(acting_.begin(), acting_.end());
  for (const ActorId actor : acting_)
    has_mail_[actor.value()] = false;
  return advance(now);
}

SimulatedFleet::Acted SimulatedFleet::act(Time now) {
  acting_.clear();
  next_events_.for_each_next([this](std::uint32_t actor) { acting_.emplace_back(actor); });
  return advance(now);
}

SimulatedFleet::Acted SimulatedFleet::advance(Time now) {
  Acted acted;
  acted.status = host_->advance(acting_, now, acted.arrivals);
  for (const ActorId actor : acting_)
    next_events_.set(actor.value(), host_->next_event(actor));
  return acted;
}

std::vector<ActorHost::Arrival> SimulatedFleet::finish(Time now) {
  std::vector<ActorHost::Arrival> arrivals;
  host_->finish(launched(), now, arrivals);
  return arrivals;
}

}  // namespace temper::orchestrator
