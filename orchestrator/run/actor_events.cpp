#include "orchestrator/run/actor_events.hpp"

#include "actors/border/values.hpp"
#include "actors/protocol/catalog.hpp"

namespace temper::orchestrator {

Result<std::optional<Event>> plain_event(ActorId actor, const actors::IncomingMessage& m) {
  using actors::bounded_text;
  using Answer = std::optional<Event>;
  return actors::dispatch<Result<Answer>>(
             m,
             [&](actors::Activity a) {
               if (a.usage) {
                 for (actors::PlaneUse& plane : a.usage->planes)
                   plane.plane = bounded_text(std::move(plane.plane));
               }
               return event::Activity{actor, std::move(a.spans), std::move(a.usage)};
             },
             [&](actors::WeightsStaged staged) {
               return event::WeightsStaged{
                   actor, staged.version, bounded_text(std::move(staged.error))};
             },
             [&](actors::WeightsCommitted committed) {
               return event::WeightsCommitted{
                   actor, committed.version, bounded_text(std::move(committed.error))};
             },
             [&](actors::Switched switched) {
               return event::Switched{
                   actor, switched.action, switched.cost, bounded_text(std::move(switched.error))};
             },
             [&](const actors::Prepared& prepared) {
               return event::Prepared{actor, prepared.lease};
             },
             [&](actors::StateSaved saved) {
               return event::CheckpointSaved{saved.version, bounded_text(std::move(saved.error))};
             })
      .value_or(Answer());
}

}  // namespace temper::orchestrator
