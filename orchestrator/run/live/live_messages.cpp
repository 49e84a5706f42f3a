// The live driver, on what actors say: each message is held against what its sender may say now
// (scheduler/scheduler_claims.cpp) before anything of it is kept.
#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/actor_events.hpp"
#include "orchestrator/run/live/live_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

/// A time that a worker says may be any number.
Time set_back(Time said, Duration ahead) {
  constexpr Time kFarthest{Duration(Duration::rep{1} << 61)};
  return std::clamp(said, Time(-kFarthest.time_since_epoch()), kFarthest) - ahead;
}

}  // namespace

/// Error: what in the message cannot be.
Status LiveDriver::on_actor_message(ActorId actor, const actors::IncomingMessage& m) {
  if (m.is<actors::Left>() && is_attached(actor)) {
    attached_->left(actor);
    return {};
  }
  if (outcome_ && !m.is<actors::Activity>())
    return {};  // only its last spans are still of interest
  if (!scheduler_.may_say(actor, m.envelope().tag)) {
    return invalid_input(fmt::format("not for an actor of role {} that is {}",
                                     name_of(scheduler_.fleet().spec(actor).role),
                                     name_of(scheduler_.stage_of(actor))));
  }
  if (m.is<actors::Heartbeat>()) {
    TEMPER_TRY(const auto beat, m.decode<actors::Heartbeat>());
    note_memory(actor, beat.resident);
    if (beat.loading && !outcome_ && scheduler_.wants_to_know_that_loads(actor, clock_->now()))
      post(event::ActorLoading{actor});
    return {};
  }
  if (m.is<actors::Ready>()) {
    // The trainer is ready when its weights are (TrainerReady).
    if (actor != scheduler_.fleet().trainer())
      post(event::ActorReady{actor, std::nullopt});
    return {};
  }
  TEMPER_TRY(auto plain, plain_event(actor, m));
  if (plain)
    return on_plain(actor, *std::move(plain));
  auto answer = actors::dispatch(
      m,
      [&](const actors::Failed& failed) {
        lose(actor, {failed.reason, failed.permanent});
      },
      [&](actors::Generated generated) { return on_work(actor, std::move(generated)); },
      [&](actors::ReferenceScored scored) { return on_work(actor, std::move(scored)); },
      [&](actors::Judged judged) { return on_work(actor, std::move(judged)); },
      [&](const actors::TrainerReady& ready) {
        return on_weights(ready.weights, event::ActorReady{actor, ready.weights.version});
      },
      [&](const actors::Trained& t) -> Status {
        TEMPER_TRY_STATUS(check(t.metrics));
        return on_weights(t.weights,
                          event::Trained{actor, t.lease, t.weights.version, t.groups, t.metrics});
      },
      [&](const actors::FetchWeights& what) { return on_fetch(actor, what); },
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

/// What the scheduler needs as it was said, if it can be.
Status LiveDriver::on_plain(ActorId actor, Event said) {
  if (auto* activity = std::get_if<event::Activity>(&said); activity && is_attached(actor))
    fit_spans(*activity);
  TEMPER_TRY_STATUS(believe(said));
  const auto* switched = std::get_if<event::Switched>(&said);
  const auto held =
      switched == nullptr ? std::nullopt : std::optional(switched->cost.process_after);
  post(std::move(said));
  if (held)
    note_memory(actor, *held);
  return {};
}

/// A card that holds more than it may ends the run, as one whose memory is full would.
void LiveDriver::note_memory(ActorId actor, Bytes resident) {
  if (outcome_ || is_attached(actor))
    return;
  if (const auto excess = card_memory_.note(scheduler_config_.actors, actor, resident))
    fail(*excess);
}

/// Its clock is of another host: it was set to ours when the worker came, with an error of the time
/// that this message took, and drifts. What is known of that is set right, and what it says it did
/// lies in the time that it had.
void LiveDriver::fit_spans(event::Activity& said) const {
  const Time now = std::max(clock_->now(), events_->last_time());
  const Duration ahead = clocks_[said.actor.value()].ahead;
  Time from = scheduler_.fleet().state(said.actor).busy_until;
  for (actors::Span& span : said.spans) {
    span.begin = std::clamp(set_back(span.begin, ahead), from, std::max(from, now));
    span.end = std::clamp(set_back(span.end, ahead), span.begin, std::max(span.begin, now));
    from = span.end;
  }
}

void LiveDriver::read_clocks() {
  for (std::uint32_t i = 0; i < clocks_.size() && !outcome_; ++i) {
    if (is_attached(ActorId(i)))
      read_clock(ActorId(i));
  }
}

/// What the record says of its clock is what its spans are set right by: it is said again where it
/// is not within what is known now, or is known twice as well.
void LiveDriver::read_clock(ActorId actor) {
  const actors::PeerId* peer = connections_.peer_of(actor);
  const auto reading = peer == nullptr ? std::nullopt : router_->clock_of(*peer, *clock_);
  if (!reading)
    return;
  auto& said = clocks_[actor.value()];
  const bool holds = said.error > Duration(0) &&
                     std::chrono::abs(reading->ahead - said.ahead) <= reading->error &&
                     reading->error * 2 > said.error;
  if (holds)
    return;
  said = *reading;
  post(event::ClockRead{actor, said.ahead, said.error});
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
  const AnswerContext evaluation{table, evaluated_, limits_, nullptr};
  const Sender sender{actor, scheduler_.fleet().spec(actor).name};
  auto told = to_event(sender, message, {queue, payloads_, limits_, &evaluation});
  if constexpr (requires { told.error(); }) {
    if (!told)
      return std::move(told).error();
    return on_told(sender, std::move(message), *std::move(told));
  } else {
    screen(sender, message, told);
    return on_told(sender, std::move(message), std::move(told));
  }
}

/// The claims that the scheduler knows: a response that breaks one fails alone where that suffices.
void LiveDriver::screen(const Sender& sender,
                        actors::Generated& message,
                        CheckedAnswer<event::Generated>& told) const {
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    const auto lie = scheduler_.find_lie(sender.id, told.event.items[i]);
    if (lie && actors::costs_the_response(lie->claim))
      fail_response(sender, message, i, lie->what, told);
  }
}

template <class M, class E>
Status LiveDriver::on_told(const Sender& sender, M message, CheckedAnswer<E> told) {
  Event said = std::move(told.event);
  TEMPER_TRY_STATUS(believe(said));
  for (const FailedResponse& f : told.failed)
    log_.warning("response failed", {{"actor", sender.name}, {"why", f.why}});
  const DistQueue& queue = scheduler_.queue();
  const DistQueue& table = scheduler_.evaluation().table();
  if (scheduler_.evaluation().under_way()) {  // each table holds its own
    keep(told.failed, table, evaluated_);
    keep(message, table, evaluated_);
  }
  keep(told.failed, queue, payloads_);
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

/// No other engine sends it the rest of what it stages.
Status LiveDriver::on_fetch(ActorId actor, const actors::FetchWeights& what) {
  const ActorState& state = scheduler_.fleet().state(actor);
  const auto staging = state.staged ? std::nullopt : state.staging;
  if (staging == what.version && weights_.handle(what.version) == nullptr) {
    post(event::WeightsStaged{actor, what.version, "the version is kept no more"});
    return {};
  }
  TEMPER_TRY(auto rest, weights_.rest(what, staging));
  log_.warning("an engine asks for weights that no other sends",
               {{"actor", scheduler_.fleet().spec(actor).name},
                {"version", what.version},
                {"from_byte", what.offset}});
  for (actors::OutgoingMessage& message : rest)
    send_message(actor, std::move(message));
  return {};
}

}  // namespace temper::orchestrator
