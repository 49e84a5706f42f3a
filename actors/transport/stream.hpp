// Flow control for one direction of a connection. Messages can have any size without delaying
// urgent ones.
//
// A body larger than kPiece is sent in consecutive pieces. Bodies of kBulk bytes or more count
// toward a window: at most kWindow bytes are in flight until the receiver acknowledges them with
// `actor.taken`. Heartbeats, `actor.taken` and `weights.feed` (which another worker waits for) are
// sent ahead of everything queued. So a heartbeat waits for at most one window, and each side
// buffers at most one window and the one message that is being reassembled.
//
// No I/O and no threads: the owner of the socket takes outgoing frames and passes incoming ones in.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/transport/message.hpp"

#include <deque>

namespace temper::actors {

/// Smallest body that counts toward the window.
inline constexpr Bytes kBulk{64 << 10};
/// Most bytes in flight to one peer.
inline constexpr Bytes kWindow{16 << 20};
/// A receiver acknowledges at least every kAckInterval bytes.
inline constexpr Bytes kAckInterval{1 << 20};

/// Messages to one peer, in order.
class OutgoingStream {
 public:
  /// The two frames of the next message or piece.
  struct Frames {
    std::string head;
    Slice body;
  };

  void push(OutgoingMessage message);
  /// The next frames to send. Null if nothing is queued or the window is full.
  const Frames* front();
  /// Removes the front, which was sent. Requires: front() is not null.
  void pop();
  /// Handles an acknowledgment. Error InvalidInput: it acknowledges more bytes than were sent, or
  /// fewer than before.
  Status acknowledge(const Taken& told);

  bool empty() const { return urgent_.empty() && queued_.empty(); }
  /// Messages that wait to be sent, except urgent ones.
  std::size_t waiting() const { return queued_.size(); }
  /// Bytes that were sent and not yet acknowledged.
  Bytes in_flight() const { return Bytes(static_cast<Bytes::rep>(sent_ - taken_)); }

 private:
  struct QueuedMessage {
    std::uint32_t tag = 0;
    std::uint32_t version = 0;
    Slice body;
    std::size_t offset = 0;  ///< Bytes before this offset were sent.
  };
  Frames frames_of(const QueuedMessage& message) const;

  std::deque<QueuedMessage> urgent_;  ///< Urgent messages, each sent whole.
  std::deque<QueuedMessage> queued_;  ///< Other messages in order; the front may be partly sent.
  std::optional<Frames> front_;
  bool front_is_urgent_ = false;
  std::uint64_t sequence_ = 0;
  std::uint64_t sent_ = 0, taken_ = 0;  ///< Bytes that count toward the window.
};

/// Reassembles the messages of one peer, in order.
class Reassembler {
 public:
  /// `largest`: limit for the size of a body.
  explicit Reassembler(Bytes largest) : largest_(largest) {}

  /// Returns the message that `part` completes; empty if further pieces are missing. Errors: pieces
  /// that do not fit together, a lost message, a body over the limit. After an error the connection
  /// is unusable.
  Result<std::optional<IncomingMessage>> add(const IncomingMessage& part);
  /// The acknowledgment to send now, if one is due.
  std::optional<Taken> due_ack();

 private:
  Status check(const Envelope& envelope, const Piece& piece, std::size_t size) const;

  Bytes largest_;
  std::string body_;  ///< Body received so far of the current message.
  std::optional<Envelope> pieces_of_;
  std::uint64_t total_ = 0;
  std::uint64_t sequence_ = 0;  ///< Sequence number of the last message or piece; 0 before the
                                ///< first.
  std::uint64_t taken_ = 0, acknowledged_ = 0;
};

}  // namespace temper::actors
