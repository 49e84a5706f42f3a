// One direction of a connection above its socket, so that a message may be of any size and none
// waits behind it that must not.
//
// A body larger than kPiece leaves in pieces, one after the other. Bodies of kBulk or more count:
// at most kWindow bytes of them are on the way until the other side says, by `actor.taken`, that
// they arrived. Heartbeats, `actor.taken` itself and `weights.feed` (a worker waits for it while
// this one is sent weights) go before all that waits. So whatever is sent, a heartbeat has at most
// a window before it, and neither side keeps more than that and the one message that it puts
// together.
//
// No I/O and no threads here; the sockets' owners ask for what may be sent and hand in what came.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/transport/message.hpp"

#include <deque>

namespace temper::actors {

/// Bodies of this size or more count into the window.
inline constexpr Bytes kBulk{64 << 10};
/// Most bytes of them on the way to one peer.
inline constexpr Bytes kWindow{16 << 20};
/// A receiver tells what it took at least so often.
inline constexpr Bytes kTellEvery{1 << 20};

/// What is to be sent to one peer, in order.
class Lane {
 public:
  /// Two frames for the socket.
  struct Wire {
    std::string head;
    Slice body;
  };

  void push(OutgoingMessage message);
  /// What may be sent now. Null: nothing is left, or the window is full.
  const Wire* front();
  /// The front was sent. Requires: there was one.
  void pop();
  /// The other side took so many bytes in all. Error: more than were sent, or fewer than before.
  Status taken(const Taken& told);

  bool empty() const { return first_.empty() && waiting_.empty(); }
  /// Bytes that were sent and not yet taken.
  Bytes on_the_way() const { return Bytes(static_cast<Bytes::rep>(sent_ - taken_)); }

 private:
  struct Waiting {
    std::uint32_t tag = 0;
    std::uint32_t version = 0;
    Slice body;
    std::size_t offset = 0;  ///< What is before it was sent.
  };
  Wire wire_of(const Waiting& message) const;

  std::deque<Waiting> first_;    ///< Goes before all others; each whole.
  std::deque<Waiting> waiting_;  ///< In order; pieces of the front were sent.
  std::optional<Wire> front_;
  bool front_is_first_ = false;
  std::uint64_t sequence_ = 0;
  std::uint64_t sent_ = 0, taken_ = 0;  ///< Bytes that count.
};

/// What comes from one peer, in order.
class Intake {
 public:
  /// `largest`: the largest body that is put together.
  explicit Intake(Bytes largest) : largest_(largest) {}

  /// The message that is whole with `part`; none: its other pieces are still to come. Error: pieces
  /// that do not fit together, a message that was lost before this one, a body over the limit;
  /// nothing that follows makes sense.
  Result<std::optional<IncomingMessage>> add(const IncomingMessage& part);
  /// What the sender is to be told now, if anything.
  std::optional<Taken> to_tell();

 private:
  Status check(const Envelope& envelope, const Piece& piece, std::size_t size) const;

  Bytes largest_;
  std::string body_;  ///< Of the message whose pieces are coming.
  std::optional<Envelope> pieces_of_;
  std::uint64_t total_ = 0;
  std::uint64_t sequence_ = 0;  ///< Of what came last; 0: nothing did.
  std::uint64_t taken_ = 0, told_ = 0;
};

}  // namespace temper::actors
