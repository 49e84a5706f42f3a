#include "orchestrator/run/actor_events.hpp"

#include "actors/protocol/catalog.hpp"

namespace temper::orchestrator {

using Answer = std::optional<Event>;

Result<std::optional<Event>> plain_event(ActorId actor, const actors::IncomingMessage& m) {
  if (m.is<actors::Activity>()) {
    TEMPER_TRY(auto activity, m.decode<actors::Activity>());
    return Answer(event::Activity{actor, std::move(activity.spans), std::move(activity.usage)});
  }
  if (m.is<actors::WeightsStaged>()) {
    TEMPER_TRY(auto staged, m.decode<actors::WeightsStaged>());
    return Answer(event::WeightsStaged{actor, staged.version, std::move(staged.error)});
  }
  if (m.is<actors::WeightsCommitted>()) {
    TEMPER_TRY(auto committed, m.decode<actors::WeightsCommitted>());
    return Answer(event::WeightsCommitted{actor, committed.version, std::move(committed.error)});
  }
  if (m.is<actors::Switched>()) {
    TEMPER_TRY(auto switched, m.decode<actors::Switched>());
    return Answer(
        event::Switched{actor, switched.action, switched.cost, std::move(switched.error)});
  }
  if (m.is<actors::StateSaved>()) {
    TEMPER_TRY(const auto saved, m.decode<actors::StateSaved>());
    return Answer(event::CheckpointSaved{saved.version, saved.error});
  }
  return Answer();
}

}  // namespace temper::orchestrator
