#include "orchestrator/worker/simulated_role.hpp"

#include "actors/protocol/counted.hpp"
#include "actors/protocol/lifecycle.hpp"

namespace temper::orchestrator {

Status SimulatedRole::on_message(const actors::IncomingMessage& message, actors::Outbox& out) {
  if (!message.is<actors::Advance>()) {
    inbox_.push_back(message);
    return {};
  }
  TEMPER_TRY(const auto advance_to, message.decode<actors::Advance>());
  return advance(advance_to.until, out);
}

Status SimulatedRole::advance(Time until, actors::Outbox& out) {
  if (until < now_)
    return invalid_input("time.advance goes back");
  now_ = until;
  if (!started_) {
    started_ = true;
    TEMPER_TRY_STATUS(actor_->start(now_, out));
  }
  for (const actors::IncomingMessage& message : inbox_)
    TEMPER_TRY_STATUS(actor_->on_message(message, now_, out));
  inbox_.clear();
  TEMPER_TRY_STATUS(actor_->advance(now_, out));
  out.send(actors::Advanced{until, actor_->next_event()});
  return {};
}

Status SimulatedRole::stop(actors::Outbox& out) {
  if (!started_)
    return {};
  const auto stop = actors::IncomingMessage::from(actors::outgoing(actors::Stop{}));
  TEMPER_TRY_STATUS(actor_->on_message(stop, now_, out));
  out.send(actors::Advanced{now_, std::nullopt});
  return {};
}

}  // namespace temper::orchestrator
