#include "actors/relay/upstream.hpp"

#include <limits>
#include <utility>

namespace temper::actors {
namespace {

constexpr Bytes kAnySize{std::numeric_limits<Bytes::rep>::max()};

}  // namespace

Status Upstream::ask(const RelayAddress& address, const FetchWeights& what) {
  if (!socket_ || address != address_) {
    close();
    Credentials credentials{.secret = {}, .orchestrator_key = address.key, .own = own_};
    TEMPER_TRY(socket_, DealerSocket::connect(address.endpoint, transport_, log_, credentials));
    address_ = address;
    reassembler_.emplace(kAnySize);
    Hello hello;
    hello.name = "relay";
    outgoing_.push(outgoing(hello));
  }
  question_ = what;
  return {};
}

void Upstream::close() {
  socket_.reset();
  outgoing_ = {};
  reassembler_.reset();
  question_.reset();
  open_ = false;
}

Upstream::TurnResult Upstream::turn() {
  TurnResult result;
  if (!socket_)
    return result;
  while (auto received = socket_->try_receive()) {
    if (Status status = take(*std::move(received), result); !status) {
      log_.warning("protocol violation by a weights source",
                   {{"from", address_.endpoint}, {"why", status.error().context}});
      result.refused = true;
      break;
    }
  }
  if (result.refused || socket_->refusals() > 0) {
    result.refused = true;
    close();
    return result;
  }
  // Until the source has answered, it does not know us and would drop the request.
  if (open_ && question_)
    outgoing_.push(outgoing(*std::exchange(question_, {})));
  while (const OutgoingStream::Frames* wire = outgoing_.front()) {
    const auto sent = socket_->try_send(wire->head, wire->body);
    if (!sent || !*sent)
      break;
    outgoing_.pop();
    result.sent = true;
  }
  return result;
}

Status Upstream::take(Received received, TurnResult& result) {
  TEMPER_TRY(const auto part, IncomingMessage::parse(std::move(received)));
  result.alive = open_ = true;
  TEMPER_TRY(auto message, reassembler_->add(part));
  if (part.is<Heartbeat>())
    return {};
  if (part.is<Taken>()) {
    TEMPER_TRY(const Taken told, part.decode<Taken>());
    return outgoing_.acknowledge(told);
  }
  if (const auto told = reassembler_->due_ack())
    outgoing_.push(outgoing(*told));
  if (message)
    result.messages.push_back(*std::move(message));
  return {};
}

std::optional<int> Upstream::fd() const {
  return socket_ ? std::optional(socket_->fd()) : std::nullopt;
}

}  // namespace temper::actors
