// Converts between described structs and the two frames of a message.
#pragma once

#include "actors/protocol/envelope.hpp"
#include "actors/transport/socket.hpp"
#include "core/msgpack.hpp"

#include <optional>
#include <type_traits>

namespace temper::actors {

/// "rollout.generate", or "message 999" for a tag that is not in the catalog.
std::string message_name(std::uint32_t tag);

/// An outgoing message, not yet numbered. The body is encoded, and either owned or shared with
/// other receivers of the same message. A message that stays in this process can carry the struct
/// itself.
struct OutgoingMessage {
  std::uint32_t tag = 0;
  std::uint32_t version = 0;
  std::string body;
  std::shared_ptr<const void> value = nullptr;  ///< A struct of the type with this tag, in place of
                                                ///< `body`.
  std::optional<Slice> shared = std::nullopt;   ///< In place of `body`.

  /// Moves the encoded body out.
  Slice take_body() { return shared ? *std::exchange(shared, {}) : Slice(std::move(body)); }
};

template <class M>
OutgoingMessage outgoing(const M& message) {
  return {.tag = M::kTag, .version = M::kVersion, .body = encode(message)};
}

/// As outgoing(), but reserves `bytes` so that a large body is never copied.
template <class M>
OutgoingMessage outgoing_large(const M& message, std::size_t bytes) {
  OutgoingMessage out{.tag = M::kTag, .version = M::kVersion, .body = {}};
  out.body.reserve(bytes);
  encode_to(out.body, message);
  return out;
}

/// For a receiver in this process (IncomingMessage::from); does not encode the message.
template <class M>
OutgoingMessage outgoing_value(M message) {
  return {.tag = M::kTag,
          .version = M::kVersion,
          .body = {},
          .value = std::make_shared<const M>(std::move(message))};
}

/// Encodes the head of a message that is sent whole, with this sequence number.
inline std::string encode_head(const OutgoingMessage& message, std::uint64_t sequence) {
  return encode(Envelope{.tag = message.tag, .version = message.version, .sequence = sequence});
}

/// A received message. The head is decoded; the body is decoded on demand, by code that knows its
/// type. Copies share the body.
class IncomingMessage {
 public:
  /// Error Corrupt if the head is not an envelope.
  static Result<IncomingMessage> parse(Received received);
  /// Delivers `message` directly, without a socket.
  static IncomingMessage from(OutgoingMessage message, std::uint64_t sequence = 1);
  /// Combines the head of the last piece with the whole body.
  static IncomingMessage whole(const IncomingMessage& last, std::string body);

  const Envelope& envelope() const { return envelope_; }
  /// Empty if the message never left this process.
  std::string_view body() const { return body_; }
  /// The body, for forwarding it unchanged.
  Slice shared_body() const { return {owner_, body_}; }

  template <class M>
  bool is() const {
    return envelope_.tag == M::kTag;
  }
  /// Errors: InvalidInput if it has another type or a version older than M::kOldestVersion; Corrupt
  /// if the body does not decode.
  template <class M>
  Result<M> decode() const {
    TEMPER_TRY_STATUS(check(M::kTag, M::kName, M::kOldestVersion));
    if (value_ != nullptr)
      return *static_cast<const M*>(value_.get());  // safe: the catalog checks that tags are unique
    auto message = temper::decode<M>(body_, limits());
    if (!message)
      return std::move(message).error().within(M::kName);
    return message;
  }

 private:
  IncomingMessage(Envelope envelope, std::string_view body, std::shared_ptr<const void> owner)
      : envelope_(envelope), body_(body), owner_(std::move(owner)) {}
  Status check(std::uint32_t tag, std::string_view name, std::uint32_t oldest) const;
  DecodeLimits limits() const;

  Envelope envelope_;
  std::string_view body_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<const void> value_;  ///< The message itself, in place of an encoded body.
};

namespace detail {
template <class Call>
struct Parameter : Parameter<decltype(&Call::operator())> {};
template <class Call, class R, class M>
struct Parameter<R (Call::*)(M) const> {
  using type = std::remove_cvref_t<M>;
};

/// Decodes the message and calls the handler. A handler without a result returns success.
template <class R, class Handler>
R answer_of(const Handler& handler, const IncomingMessage& message) {
  using M = typename Parameter<Handler>::type;
  auto decoded = message.decode<M>();
  if (!decoded)
    return std::move(decoded).error();
  if constexpr (std::is_void_v<std::invoke_result_t<const Handler&, M>>) {
    handler(*std::move(decoded));
    return R{};
  } else {
    return R(handler(*std::move(decoded)));
  }
}
}  // namespace detail

/// Calls the handler for the type of `message`, a lambda such as
/// `[&](const Cancel& work) { ... }`. Returns the handler's result (success if it has none) or the
/// decoding error; empty if no handler takes this type.
template <class R = Status, class... Handlers>
std::optional<R> dispatch(const IncomingMessage& message, const Handlers&... handlers) {
  std::optional<R> answer;
  const auto offer = [&]<class Handler>(const Handler& handler) {
    if (!message.is<typename detail::Parameter<Handler>::type>())
      return false;
    answer.emplace(detail::answer_of<R>(handler, message));
    return true;
  };
  static_cast<void>((offer(handlers) || ...));
  return answer;
}

}  // namespace temper::actors
