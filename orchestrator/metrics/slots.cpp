#include "orchestrator/metrics/slots.hpp"

#include <algorithm>

namespace temper::orchestrator {

void Slots::feed(const Record& record) {
  sum_ = response_seconds(record.time);
  now_ = record.time;
  if (const auto* generated = std::get_if<event::Generated>(&record.event)) {
    for (const auto& item : generated->items)
      take_back(item.response, generated->actor);
  } else if (const auto* down = std::get_if<event::ActorDown>(&record.event)) {
    lose(down->actor);
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    for (std::uint32_t a = 0; a < engines_.size(); ++a)
      lose(ActorId(a));
  }
  if (const auto* actors = actors_in(record.event))
    take_actors(*actors);
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
    } else if (const auto* retire = std::get_if<command::Retire>(&command)) {
      lose(retire->actor);
    }
  }
}

void Slots::take_actors(const std::vector<ActorSpec>& actors) {
  if (!engines_.empty()) {
    slot_seconds_ += static_cast<double>(slots_) * seconds(now_ - slots_since_);
    slots_since_ = now_;
  }
  slots_ = 0;
  engines_.resize(actors.size());
  for (std::size_t a = 0; a < actors.size(); ++a) {
    if (actors[a].role != actors::RoleKind::Rollout || actors[a].away)
      continue;  // A removed engine keeps its responses in the slots that it had.
    change_slots(engines_[a], actors[a].concurrency);
    slots_ += actors[a].concurrency;
  }
}

void Slots::change_slots(Engine& engine, std::int64_t to) {
  if (engine.slots == to)
    return;
  const std::int64_t load = engine.load;
  change_load(engine, 0);
  engine.served += static_cast<double>(engine.slots) * seconds(engine.serving);
  engine.serving = {};
  engine.slots = to;
  change_load(engine, load);
}

void Slots::give(ResponseId response, ActorId engine) {
  if (engine.value() >= engines_.size())
    return;
  const auto [it, fresh] = holders_.try_emplace(response.value(), engine);
  if (!fresh) {
    Engine& before = engines_[it->second.value()];
    change_load(before, before.load - 1);
    --load_;
  }
  it->second = engine;
  Engine& holder = engines_[engine.value()];
  change_load(holder, holder.load + 1);
  ++load_;
}

void Slots::take_back(ResponseId response, ActorId engine) {
  const auto it = holders_.find(response.value());
  if (it == holders_.end() || it->second != engine)
    return;
  Engine& holder = engines_[engine.value()];
  change_load(holder, holder.load - 1);
  --load_;
  holders_.erase(it);
}

void Slots::lose(ActorId engine) {
  if (engine.value() >= engines_.size() || engines_[engine.value()].load == 0)
    return;
  load_ -= engines_[engine.value()].load;
  change_load(engines_[engine.value()], 0);
  std::erase_if(holders_, [engine](const auto& held) { return held.second == engine; });
}

void Slots::change_load(Engine& engine, std::int64_t to) {
  if (engine.load == 0 && to > 0)
    engine.since = now_;
  if (engine.load > 0 && to == 0)
    engine.serving += now_ - engine.since;
  engine.load = to;
}

double Slots::response_seconds(Time until) const {
  return until <= now_ ? sum_ : sum_ + static_cast<double>(load_) * seconds(until - now_);
}

double Slots::over_wall(Time until) const {
  const double whole = slot_seconds_ + static_cast<double>(slots_) * seconds(until - slots_since_);
  return whole > 0 ? response_seconds(until) / whole : 0;
}

double Slots::while_serving(Time until) const {
  double whole = 0;
  for (const Engine& engine : engines_) {
    const Duration now = engine.load > 0 ? std::max(until, now_) - engine.since : Duration{};
    whole += engine.served + static_cast<double>(engine.slots) * seconds(engine.serving + now);
  }
  return whole > 0 ? response_seconds(until) / whole : 0;
}

}  // namespace temper::orchestrator
