#include "actors/transport/message.hpp"

#include "actors/protocol/catalog.hpp"

#include <algorithm>

namespace temper::actors {

std::string message_name(std::uint32_t tag) {
  std::string name;
  AllMessages::for_each([&]<class M>(std::type_identity<M>) {
    if (M::kTag == tag)
      name = M::kName;
  });
  return name.empty() ? fmt::format("message {}", tag) : name;
}

Result<IncomingMessage> IncomingMessage::parse(Received received) {
  auto envelope = temper::decode<Envelope>(received.head);
  if (!envelope)
    return std::move(envelope).error().within("envelope");
  return IncomingMessage(*envelope, received.body, std::move(received.owner));
}

IncomingMessage IncomingMessage::from(OutgoingMessage message, std::uint64_t sequence) {
  const Envelope envelope{.tag = message.tag, .version = message.version, .sequence = sequence};
  if (message.value != nullptr) {
    IncomingMessage incoming(envelope, {}, nullptr);
    incoming.value_ = std::move(message.value);
    return incoming;
  }
  auto body = std::make_shared<const std::string>(std::move(message.body));
  return IncomingMessage(envelope, *body, body);
}

IncomingMessage IncomingMessage::whole(const IncomingMessage& last, std::string body) {
  Envelope envelope = last.envelope_;
  envelope.piece.reset();
  auto owner = std::make_shared<const std::string>(std::move(body));
  return IncomingMessage(envelope, *owner, owner);
}

/// Limits the nodes of a parsed body to the memory of the body itself.
DecodeLimits IncomingMessage::limits() const {
  DecodeLimits limits;
  limits.values = std::max(limits.values, body_.size() / sizeof(temper::detail::MsgpackNode));
  return limits;
}

Status IncomingMessage::check(std::uint32_t tag,
                              std::string_view name,
                              std::uint32_t oldest) const {
  if (envelope_.tag != tag) {
    return invalid_input(
        fmt::format("expected {}, received {}", name, message_name(envelope_.tag)));
  }
  if (envelope_.version < oldest) {
    return Error{ErrorCode::Unsupported,
                 fmt::format("{}: version {} is too old, expected at least {}; update the sender",
                             name,
                             envelope_.version,
                             oldest)};
  }
  return {};
}

}  // namespace temper::actors
