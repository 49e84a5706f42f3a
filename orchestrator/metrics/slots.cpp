#include "orchestrator/metrics/slots.hpp"

namespace temper::orchestrator {

void Slots::feed(const Record& record) {
  sum_ = response_seconds(record.time);
  now_ = record.time;
  if (const auto* started = std::get_if<event::Started>(&record.event)) {
    start(started->config);
  } else if (const auto* activity = std::get_if<event::Activity>(&record.event)) {
    if (activity->actor.value() >= engines_.size())
      return;
    for (const actors::Span& span : activity->spans) {
      if (span.state == actors::CardState::Decode || span.state == actors::CardState::Prefill)
        engines_[activity->actor.value()].generating += span.end - span.begin;
    }
  } else if (const auto* generated = std::get_if<event::Generated>(&record.event)) {
    for (const auto& item : generated->items)
      take_back(item.response, generated->actor);
  } else if (const auto* down = std::get_if<event::ActorDown>(&record.event)) {
    lose(down->actor);
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    for (std::uint32_t a = 0; a < engines_.size(); ++a)
      lose(ActorId(a));
  }
  for (const Command& command : record.commands) {
    if (const auto* dispatch = std::get_if<command::Dispatch>(&command)) {
      for (const ResponseId r : dispatch->responses)
        give(r, dispatch->actor);
    } else if (const auto* cancel = std::get_if<command::Cancel>(&command)) {
      take_back(cancel->response, cancel->actor);
    } else if (const auto* launch = std::get_if<command::Launch>(&command)) {
      lose(launch->actor);
    } else if (const auto* discard = std::get_if<command::Discard>(&command)) {
      lose(discard->actor);
    }
  }
}

void Slots::start(const SchedulerConfig& config) {
  engines_.assign(config.actors.size(), {});
  for (std::size_t a = 0; a < engines_.size(); ++a) {
    if (config.actors[a].role != actors::RoleKind::Rollout)
      continue;
    engines_[a].slots = config.actors[a].concurrency;
    slots_ += engines_[a].slots;
  }
}

void Slots::give(ResponseId response, ActorId engine) {
  if (engine.value() >= engines_.size())
    return;
  const auto [it, fresh] = holders_.try_emplace(response.value(), engine);
  if (!fresh)
    --engines_[it->second.value()].load;
  else
    ++load_;
  it->second = engine;
  ++engines_[engine.value()].load;
}

void Slots::take_back(ResponseId response, ActorId engine) {
  const auto it = holders_.find(response.value());
  if (it == holders_.end() || it->second != engine)
    return;
  --engines_[engine.value()].load;
  --load_;
  holders_.erase(it);
}

void Slots::lose(ActorId engine) {
  if (engine.value() >= engines_.size() || engines_[engine.value()].load == 0)
    return;
  load_ -= engines_[engine.value()].load;
  engines_[engine.value()].load = 0;
  std::erase_if(holders_, [engine](const auto& held) { return held.second == engine; });
}

double Slots::response_seconds(Time until) const {
  return until <= now_ ? sum_ : sum_ + static_cast<double>(load_) * seconds(until - now_);
}

double Slots::over_wall(Time until) const {
  const double whole = static_cast<double>(slots_) * seconds(until.time_since_epoch());
  return whole > 0 ? response_seconds(until) / whole : 0;
}

double Slots::while_generating(Time until) const {
  double whole = 0;
  for (const Engine& engine : engines_)
    whole += static_cast<double>(engine.slots) * seconds(engine.generating);
  return whole > 0 ? response_seconds(until) / whole : 0;
}

}  // namespace temper::orchestrator
