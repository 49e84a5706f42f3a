// Converts messages of actors to events of the scheduler: the messages that are the same whether
// tokens are real or counted.
#pragma once

#include "actors/transport/message.hpp"
#include "orchestrator/scheduler/state/events.hpp"

#include <optional>

namespace temper::orchestrator {

/// None: the message is of another kind. Error: its body does not decode.
Result<std::optional<Event>> plain_event(ActorId actor, const actors::IncomingMessage& message);

}  // namespace temper::orchestrator
