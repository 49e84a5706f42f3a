#include "actors/transport/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::actors {
namespace {

/// Messages read per turn, so that sending and heartbeats are not starved.
constexpr int kBatch = 256;
/// Size limit of an unauthenticated actor.hello; a real one has a few hundred bytes.
constexpr std::size_t kLargestHello = 4096;
/// Peers whose last messages may still arrive: as many as a large run has workers.
constexpr std::size_t kGoneKept = 1024;

}  // namespace

Exchange::Exchange(RouterSocket socket, Options options, const Clock& clock)
    : socket_(std::move(socket)), options_(options), clock_(clock) {}

void Exchange::admit(const PeerId& peer, PeerLivenessPtr liveness) {
  peers_.try_emplace(
      peer, Peer{OutgoingStream(), Reassembler(options_.max_message), std::move(liveness)});
  std::erase(gone_, peer);
}

void Exchange::forget(const PeerId& peer) {
  remove(peer);
}

void Exchange::remove(const PeerId& peer) {
  if (peers_.erase(peer) == 0)
    return;
  gone_.push_back(peer);
  if (gone_.size() > kGoneKept)
    gone_.pop_front();
}

std::size_t Exchange::waiting(const PeerId& peer) const {
  const auto it = peers_.find(peer);
  return it == peers_.end() ? 0 : it->second.outgoing.waiting();
}

void Exchange::drop(const PeerId& peer, std::string_view why) {
  if (std::ranges::find(gone_, peer) == gone_.end())
    socket_.drop(peer, why);
}

void Exchange::send(const PeerId& peer, OutgoingMessage message) {
  if (const auto it = peers_.find(peer); it != peers_.end())
    return it->second.outgoing.push(std::move(message));
  if (message.tag != Reject::kTag && message.tag != Stop::kTag)
    return;  // the caller knows, or will learn, that the peer is lost
  const std::string head = encode_head(message, 1);
  // A rejected peer may have disconnected already; that is not an error.
  static_cast<void>(socket_.send(peer, head, message.take_body()));
}

Exchange::TurnResult Exchange::turn(Reading reading, Heartbeats heartbeats) {
  TurnResult result;
  const Time now = clock_.now();
  if (reading == Reading::On) {
    read(result);
  } else {
    for (auto& [id, peer] : peers_)
      peer.liveness->heard.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  if (now >= next_heartbeat_) {
    next_heartbeat_ = now + options_.heartbeat;
    for (auto& [id, peer] : peers_) {
      if (heartbeats == Heartbeats::On)
        peer.outgoing.push(outgoing(Heartbeat{.resident = {}, .sent = now}));
    }
  }
  send_queued(result);
  return result;
}

Status Exchange::wait(Reading reading, int wake_fd, Duration at_most) {
  const Duration patience =
      std::min(at_most, std::max(Duration::zero(), next_heartbeat_ - clock_.now()));
  return socket_.wait(
      reading == Reading::On ? RouterSocket::Wait::Readable : RouterSocket::Wait::WakeOnly,
      wake_fd,
      patience);
}

void Exchange::read(TurnResult& result) {
  for (int i = 0; i < kBatch; ++i) {
    auto received = socket_.try_receive();
    if (!received)
      break;
    take(*std::move(received), result);
  }
  result.more = socket_.readable();
}

void Exchange::take(Received received, TurnResult& result) {
  const PeerId id = received.peer;
  const std::string user = received.user;
  auto part = IncomingMessage::parse(std::move(received));
  if (!part)
    return drop(id, part.error().context);
  const auto it = peers_.find(id);
  if (it == peers_.end()) {
    const bool introduces_itself =
        part->is<Hello>() && !part->envelope().piece && part->body().size() <= kLargestHello;
    if (!introduces_itself)
      return drop(id, "expected actor.hello from an unregistered peer");
    const auto hello = part->decode<Hello>();
    if (!hello)
      return drop(id, hello.error().context);
    const bool attaches = !user.empty() && user.front() == kAttachedUser;
    if (!user.empty() && !attaches && hello->name != user)
      return drop(
          id, fmt::format("actor.hello names {}, but its key was issued to {}", hello->name, user));
    result.arrived.push_back({id, *std::move(part), user});
    return;
  }
  it->second.liveness->heard.store(clock_.now().time_since_epoch().count(),
                                   std::memory_order_relaxed);
  if (Status status = take_from(it->second, id, *part, result); !status)
    break_off(id, "protocol violation: " + status.error().context, result);
}

Status Exchange::take_from(Peer& peer,
                           const PeerId& id,
                           const IncomingMessage& part,
                           TurnResult& result) {
  TEMPER_TRY(auto message, peer.reassembler.add(part));
  if (part.is<Heartbeat>()) {
    TEMPER_TRY(const Heartbeat heartbeat, part.decode<Heartbeat>());
    peer.liveness->clock.note(heartbeat, clock_.now());
    if (message)
      result.heartbeats.push_back({id, *std::move(message)});
    return {};
  }
  if (part.is<Taken>()) {
    TEMPER_TRY(const Taken told, part.decode<Taken>());
    return peer.outgoing.acknowledge(told);
  }
  if (const auto told = peer.reassembler.due_ack())
    peer.outgoing.push(outgoing(*told));
  if (message)
    result.arrived.push_back({id, *std::move(message)});
  return {};
}

void Exchange::send_queued(TurnResult& result) {
  std::vector<BrokenPeer> broken;
  for (auto& [id, peer] : peers_) {
    while (const OutgoingStream::Frames* wire = peer.outgoing.front()) {
      if (Status sent = socket_.send(id, wire->head, wire->body); !sent) {
        broken.push_back({id, sent.error().context});
        break;
      }
      peer.outgoing.pop();
    }
  }
  for (BrokenPeer& b : broken)
    break_off(b.peer, std::move(b.why), result);
}

void Exchange::break_off(const PeerId& peer, std::string why, TurnResult& result) {
  remove(peer);
  result.broken.push_back({peer, std::move(why)});
}

}  // namespace temper::actors
