// The live driver, on what actors say: each message is held against what its sender may say now
// (scheduler/scheduler_claims.cpp) before anything of it is kept.
#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/actor_events.hpp"
#include "orchestrator/run/live/live_driver.hpp"
#include "orchestrator/run/live/payload_events.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {

/// Error: what in the message cannot be.
Status LiveDriver::on_actor_message(ActorId actor, const actors::IncomingMessage& m) {
  if (outcome_ && !m.is<actors::Activity>())
    return {};  // only its last spans are still of interest
  if (!scheduler_.may_say(actor, m.envelope().tag)) {
    return invalid_input(fmt::format("not for an actor of role {} that is {}",
                                     name_of(scheduler_.fleet().spec(actor).role),
                                     name_of(scheduler_.stage_of(actor))));
  }
  if (m.is<actors::Heartbeat>())
    return {};
  if (m.is<actors::Ready>()) {
    // The trainer is ready when its weights are (TrainerReady).
    if (actor != scheduler_.fleet().trainer())
      post(event::ActorReady{actor, std::nullopt});
    return {};
  }
  TEMPER_TRY(auto plain, plain_event(actor, m));
  if (plain) {
    TEMPER_TRY_STATUS(believe(*plain));
    post(*std::move(plain));
    return {};
  }
  auto answer = actors::dispatch(
      m,
      [&](const actors::Failed& failed) { lose(actor, failed.reason); },
      [&](actors::Generated generated) { return on_work(actor, std::move(generated)); },
      [&](actors::ReferenceScored scored) { return on_work(actor, std::move(scored)); },
      [&](actors::Judged judged) {
        for (const auto& item : judged.items) {
          if (!item.failure.empty())
            log_.warning("a response could not be judged", {{"why", item.failure}});
        }
        return on_work(actor, std::move(judged));
      },
      [&](const actors::TrainerReady& ready) {
        return on_weights(ready.weights, event::ActorReady{actor, ready.weights.version});
      },
      [&](const actors::Trained& t) -> Status {
        TEMPER_TRY_STATUS(check(t.metrics));
        return on_weights(t.weights,
                          event::Trained{actor, t.lease, t.weights.version, t.groups, t.metrics});
      },
      [&](const actors::WeightsChunk& chunk) -> Status {
        TEMPER_TRY(auto whole, weights_.add(chunk));
        if (whole)
          post(*std::move(whole));
        return {};
      });
  if (answer)
    return *std::move(answer);
  return invalid_input("not for an orchestrator of local hardware");
}

Status LiveDriver::believe(const Event& said) const {
  const Time now = std::max(clock_->now(), events_->last_time());
  if (auto lie = scheduler_.find_lie(said, now))
    return invalid_input(std::move(lie->what));
  return {};
}

template <class M>
Status LiveDriver::on_work(ActorId actor, M message) {
  const DistQueue& queue = scheduler_.queue();
  const DistQueue& table = scheduler_.evaluation().table();
  const Held evaluation{table, evaluated_, limits_, nullptr};
  TEMPER_TRY(Event said, to_event(actor, message, {queue, payloads_, limits_, &evaluation}));
  TEMPER_TRY_STATUS(believe(said));
  if (scheduler_.evaluation().under_way())
    keep(message, table, evaluated_);  // each table holds its own
  keep(std::move(message), queue, payloads_);
  post(std::move(said));
  return {};
}

Status LiveDriver::on_weights(const actors::WeightsHandle& handle, Event announcement) {
  TEMPER_TRY_STATUS(believe(announcement));
  if (handle.bytes < Bytes(0))
    return invalid_input(fmt::format("weights of {} bytes", handle.bytes.count()));
  TEMPER_TRY(auto whole, weights_.announce(handle, std::move(announcement)));
  if (whole)
    post(*std::move(whole));
  return {};
}

}  // namespace temper::orchestrator
