#include "orchestrator/run/live/actor_messages.hpp"

#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/actor_events.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {

ActorMessages::ActorMessages(RunCore& core,
                             WorkExchange& work,
                             WeightSync& weights,
                             WorkerClocks& clocks,
                             LiveWorkers& workers,
                             Bytes card_memory)
    : core_(core),
      work_(work),
      weights_(weights),
      clocks_(clocks),
      workers_(workers),
      card_memory_(card_memory) {}

void ActorMessages::receive(ActorId actor, const actors::IncomingMessage& message) {
  if (Status status = handle(actor, message); !status) {
    workers_.lose_violator(
        actor, std::move(status).error().within(actors::message_name(message.envelope().tag)));
  }
}

Status ActorMessages::handle(ActorId actor, const actors::IncomingMessage& m) {
  if (m.is<actors::Left>() && core_.actor(actor).attached) {
    workers_.on_left(actor);
    return {};
  }
  if (core_.finished() && !m.is<actors::Activity>())
    return {};  // only its last spans are still of interest
  const Status valid = core_.validate(actor, m.envelope().tag);
  if (m.is<actors::Heartbeat>()) {
    TEMPER_TRY(const auto beat, m.decode<actors::Heartbeat>());
    if (valid)  // it may have crossed the end of its sender
      handle_heartbeat(actor, beat);
    return {};
  }
  TEMPER_TRY_STATUS(valid);
  if (m.is<actors::Ready>()) {
    // The trainer is ready when its weights are (TrainerReady).
    if (actor != core_.state().fleet.trainer())
      core_.post(event::ActorReady{actor, std::nullopt});
    return {};
  }
  TEMPER_TRY(auto plain, plain_event(actor, m));
  if (plain)
    return handle_plain(actor, *std::move(plain));
  return handle_work(actor, m);
}

void ActorMessages::handle_heartbeat(ActorId actor, const actors::Heartbeat& beat) {
  note_memory(actor, beat.resident);
  if (beat.loading && core_.wants_to_know_that_loads(actor))
    core_.post(event::ActorLoading{actor});
}

/// A message that is an event as it stands.
Status ActorMessages::handle_plain(ActorId actor, Event said) {
  if (auto* activity = std::get_if<event::Activity>(&said); activity && core_.actor(actor).attached)
    clocks_.fit(*activity);
  TEMPER_TRY_STATUS(core_.validate(said));
  const auto* switched = std::get_if<event::Switched>(&said);
  const auto held =
      switched == nullptr ? std::nullopt : std::optional(switched->cost.process_after);
  core_.post(std::move(said));
  if (held)
    note_memory(actor, *held);
  return {};
}

Status ActorMessages::handle_work(ActorId actor, const actors::IncomingMessage& m) {
  auto answer = actors::dispatch(
      m,
      [&](const actors::Failed& failed) {
        workers_.lose(actor, {failed.reason, failed.permanent, failed.not_finite});
      },
      [&](actors::Generated generated) { return work_.receive(actor, std::move(generated)); },
      [&](actors::ReferenceScored scored) { return work_.receive(actor, std::move(scored)); },
      [&](actors::Judged judged) { return work_.receive(actor, std::move(judged)); },
      [&](const actors::TrainerReady& ready) {
        return weights_.announce(ready.weights, event::ActorReady{actor, ready.weights.version});
      },
      [&](const actors::Trained& t) -> Status {
        TEMPER_TRY_STATUS(check(t.metrics));
        return weights_.announce(
            t.weights, event::Trained{actor, t.lease, t.weights.version, t.groups, t.metrics});
      },
      [&](const actors::FetchWeights& request) { return weights_.fetch(actor, request); },
      [&](const actors::WeightsChunk& chunk) { return weights_.add(chunk); });
  if (answer)
    return *std::move(answer);
  return invalid_input("not for an orchestrator of local hardware");
}

/// A card that holds more than its limit ends the run, as one whose memory is full would.
void ActorMessages::note_memory(ActorId actor, Bytes resident) {
  if (core_.finished() || core_.actor(actor).attached)
    return;
  if (const auto excess = card_memory_.note(core_.config().actors, actor, resident))
    core_.fail(*excess);
}

}  // namespace temper::orchestrator
