#include "actors/transport/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::actors {
namespace {

/// Messages read per turn, so that sending and heartbeats get theirs.
constexpr int kBatch = 256;
/// A stranger's actor.hello is some hundred bytes.
constexpr std::size_t kLargestHello = 4096;
/// Peers whose last words may still arrive: as many as a large run has workers.
constexpr std::size_t kGoneKept = 1024;

}  // namespace

Exchange::Exchange(RouterSocket socket, Options options, const Clock& clock)
    : socket_(std::move(socket)), options_(options), clock_(clock) {}

void Exchange::admit(const PeerId& peer, PeerSignsPtr signs) {
  peers_.try_emplace(peer, Peer{Lane(), Intake(options_.max_message), std::move(signs)});
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

void Exchange::drop(const PeerId& peer, std::string_view why) {
  if (std::ranges::find(gone_, peer) == gone_.end())
    socket_.drop(peer, why);
}

void Exchange::send(const PeerId& peer, OutgoingMessage message) {
  if (const auto it = peers_.find(peer); it != peers_.end())
    return it->second.lane.push(std::move(message));
  if (message.tag != Reject::kTag && message.tag != Stop::kTag)
    return;  // its loss is known or on its way
  const std::string head = encode_head(message, 1);
  // Whoever was refused may be gone again: that is no loss.
  static_cast<void>(socket_.send(peer, head, message.take_body()));
}

Exchange::Moved Exchange::turn(Reading reading, Heartbeats heartbeats) {
  Moved moved;
  const Time now = clock_.now();
  if (reading == Reading::On) {
    read(moved);
  } else {
    for (auto& [id, peer] : peers_)
      peer.signs->heard.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  if (now >= next_heartbeat_) {
    next_heartbeat_ = now + options_.heartbeat;
    for (auto& [id, peer] : peers_) {
      if (heartbeats == Heartbeats::On)
        peer.lane.push(outgoing(Heartbeat{.resident = {}, .sent = now}));
    }
  }
  send_what_fits(moved);
  return moved;
}

Status Exchange::wait(Reading reading, int wake_fd, Duration at_most) {
  const Duration patience =
      std::min(at_most, std::max(Duration::zero(), next_heartbeat_ - clock_.now()));
  return socket_.wait(
      reading == Reading::On ? RouterSocket::Wait::Readable : RouterSocket::Wait::WakeOnly,
      wake_fd,
      patience);
}

void Exchange::read(Moved& moved) {
  for (int i = 0; i < kBatch; ++i) {
    auto received = socket_.try_receive();
    if (!received)
      break;
    take(*std::move(received), moved);
  }
  moved.more = socket_.readable();
}

void Exchange::take(Received received, Moved& moved) {
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
      return drop(id, "not registered");
    const auto hello = part->decode<Hello>();
    if (!hello)
      return drop(id, hello.error().context);
    const bool attaches = !user.empty() && user.front() == kAttachedUser;
    if (!user.empty() && !attaches && hello->name != user)
      return drop(id, fmt::format("its key was handed out to {}, not to {}", user, hello->name));
    moved.arrived.push_back({id, *std::move(part), user});
    return;
  }
  it->second.signs->heard.store(clock_.now().time_since_epoch().count(), std::memory_order_relaxed);
  if (Status status = take_from(it->second, id, *part, moved); !status)
    break_off(id, "sent a message that cannot be: " + status.error().context, moved);
}

Status Exchange::take_from(Peer& peer,
                           const PeerId& id,
                           const IncomingMessage& part,
                           Moved& moved) {
  TEMPER_TRY(auto message, peer.intake.add(part));
  if (part.is<Heartbeat>()) {
    TEMPER_TRY(const Heartbeat heartbeat, part.decode<Heartbeat>());
    peer.signs->clock.note(heartbeat, clock_.now());
    return {};
  }
  if (part.is<Taken>()) {
    TEMPER_TRY(const Taken told, part.decode<Taken>());
    return peer.lane.taken(told);
  }
  if (const auto told = peer.intake.to_tell())
    peer.lane.push(outgoing(*told));
  if (message)
    moved.arrived.push_back({id, *std::move(message)});
  return {};
}

void Exchange::send_what_fits(Moved& moved) {
  std::vector<Broken> broken;
  for (auto& [id, peer] : peers_) {
    while (const Lane::Wire* wire = peer.lane.front()) {
      if (Status sent = socket_.send(id, wire->head, wire->body); !sent) {
        broken.push_back({id, sent.error().context});
        break;
      }
      peer.lane.pop();
    }
  }
  for (Broken& b : broken)
    break_off(b.peer, std::move(b.why), moved);
}

void Exchange::break_off(const PeerId& peer, std::string why, Moved& moved) {
  remove(peer);
  moved.broken.push_back({peer, std::move(why)});
}

}  // namespace temper::actors
