#include "orchestrator/metrics/turns.hpp"

#include <algorithm>

namespace temper::orchestrator {

void Turns::feed(const Record& record) {
  const Time now = record.time;
  if (const auto* actors = actors_in(record.event))
    take_actors(*actors);
  if (const auto* switched = std::get_if<event::Switched>(&record.event)) {
    end(name_of(switched->action), switched->actor, now);
  } else if (const auto* staged = std::get_if<event::WeightsStaged>(&record.event)) {
    end("reshard", staged->actor, now);
  } else if (const auto* committed = std::get_if<event::WeightsCommitted>(&record.event)) {
    end("bind", committed->actor, now);
  } else if (std::holds_alternative<event::Resumed>(record.event)) {
    open_.clear();
  }
  if (turning_.empty())
    return;
  for (const Command& command : record.commands) {
    if (const auto* c = std::get_if<command::Switch>(&command))
      begin(name_of(c->action), c->actor, now);
    else if (const auto* stage = std::get_if<command::StageWeights>(&command))
      begin("reshard", stage->actor, now);
    else if (const auto* commit = std::get_if<command::CommitWeights>(&command))
      begin("bind", commit->actor, now);
    else if (const auto* launch = std::get_if<command::Launch>(&command))
      forget(launch->actor);
    else if (const auto* discard = std::get_if<command::Discard>(&command))
      forget(discard->actor);
    else if (const auto* retire = std::get_if<command::Retire>(&command))
      forget(retire->actor);
  }
}

void Turns::take_actors(const std::vector<ActorSpec>& actors) {
  turning_.clear();
  const bool shared = std::ranges::any_of(actors, &ActorSpec::takes_turns);
  for (std::uint32_t i = 0; i < actors.size() && shared; ++i) {
    if (actors[i].takes_turns || actors[i].role == actors::RoleKind::Trainer)
      turning_.emplace(i);
  }
}

void Turns::forget(ActorId actor) {
  for (auto& [state, open] : open_)
    open.actors.erase(actor);
}

void Turns::begin(std::string_view state, ActorId actor, Time now) {
  if (!counts(actor))
    return;
  OpenState& open = open_[std::string(state)];
  if (open.actors.empty())
    open.began = now;
  open.actors.insert(actor);
}

void Turns::end(std::string_view state, ActorId actor, Time now) {
  const auto open = open_.find(state);
  if (open == open_.end() || open->second.actors.erase(actor) == 0 || !open->second.actors.empty())
    return;
  TurnState& total = states_[std::string(state)];
  const Duration took = now - open->second.began;
  ++total.count;
  total.total += took;
  total.longest = std::max(total.longest, took);
}

}  // namespace temper::orchestrator
