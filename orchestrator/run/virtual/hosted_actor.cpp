#include "orchestrator/run/virtual/hosted_actor.hpp"

#include "actors/protocol/lifecycle.hpp"

namespace temper::orchestrator {

Status HostedActor::make(const SimulatedActorFactory& factory, const actors::RoleConfig& role) {
  TEMPER_TRY(actor_, factory(role));
  state_ = State::Made;
  inbox_.clear();
  next_.reset();
  return {};
}

void HostedActor::drop() {
  actor_.reset();
  state_ = State::Failed;
  inbox_.clear();
  next_.reset();
}

Status HostedActor::act(Time now, actors::Outbox& out) {
  TEMPER_CHECK(actor_ != nullptr, "an actor is made before it acts");
  Status status = take_and_advance(now, out);
  if (!status)
    state_ = State::Failed;
  next_ = actor_->next_event();
  return status;
}

Status HostedActor::take_and_advance(Time now, actors::Outbox& out) {
  if (state_ == State::Made) {
    state_ = State::Started;
    TEMPER_TRY_STATUS(actor_->start(now, out));
  }
  for (const actors::IncomingMessage& message : inbox_)
    TEMPER_TRY_STATUS(actor_->on_message(message, now, out));
  inbox_.clear();
  return actor_->advance(now, out);
}

void HostedActor::finish(Time now, actors::Outbox& out) {
  if (state_ != State::Started || !take_and_advance(now, out))
    return;
  const auto stop = actors::IncomingMessage::from(actors::outgoing(actors::Stop{}));
  static_cast<void>(actor_->on_message(stop, now, out));
}

}  // namespace temper::orchestrator
