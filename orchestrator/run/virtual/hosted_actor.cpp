#include "orchestrator/run/virtual/hosted_actor.hpp"

#include "actors/protocol/lifecycle.hpp"

#include <algorithm>

namespace temper::orchestrator {

Status HostedActor::make(const SimulatedActorFactory& factory, const actors::RoleConfig& role) {
  TEMPER_TRY(actor_, factory(role));
  state_ = State::Made;
  inbox_.clear();
  next_.reset();
  return {};
}

void HostedActor::drop(Time now) {
  actor_.reset();
  state_ = State::Failed;
  inbox_.clear();
  next_.reset();
  time_.release(now);
}

Status HostedActor::act(Time now, actors::Outbox& out) {
  TEMPER_CHECK(actor_ != nullptr, "an actor is made before it acts");
  if (time_.stopped(now))
    return {};
  Status status = take_and_advance(time_.own(now), out);
  if (!status)
    state_ = State::Failed;
  next_ = actor_->next_event();
  return status;
}

Status HostedActor::take_and_advance(Time own, actors::Outbox& out) {
  if (state_ == State::Made) {
    state_ = State::Started;
    TEMPER_TRY_STATUS(actor_->start(own, out));
  }
  for (const actors::IncomingMessage& message : inbox_)
    TEMPER_TRY_STATUS(actor_->on_message(message, own, out));
  inbox_.clear();
  return actor_->advance(own, out);
}

/// Only actor.activity has times.
actors::IncomingMessage HostedActor::in_time_of_run(actors::IncomingMessage message) const {
  if (!message.is<actors::Activity>() || time_.is_run_time())
    return message;
  auto activity = message.decode<actors::Activity>();
  TEMPER_CHECK(activity, "what an actor of this process says can be read");
  for (actors::Span& span : activity->spans) {
    span.begin = time_.run(span.begin);
    span.end = time_.run(span.end);
  }
  return actors::IncomingMessage::from(actors::outgoing_value(*std::move(activity)));
}

std::optional<Time> HostedActor::next_event() const {
  if (time_.is_run_time())
    return next_;
  std::optional<Time> next;
  if (next_)
    next = std::max(time_.run(*next_), time_.stopped_until());
  const bool owes = state_ == State::Made || (state_ == State::Started && !inbox_.empty());
  return owes ? std::min(next.value_or(Time::max()), time_.stopped_until()) : next;
}

void HostedActor::finish(Time now, actors::Outbox& out) {
  if (state_ != State::Started || time_.stopped(now) || !take_and_advance(time_.own(now), out))
    return;
  const auto stop = actors::IncomingMessage::from(actors::outgoing(actors::Stop{}));
  static_cast<void>(actor_->on_message(stop, time_.own(now), out));
}

}  // namespace temper::orchestrator
