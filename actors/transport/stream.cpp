#include "actors/transport/stream.hpp"

#include "actors/protocol/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace temper::actors {
namespace {

constexpr auto kPieceSize = static_cast<std::size_t>(kPiece.count());
/// A chunk of weights, with a few bytes of header, is sent as one piece.
constexpr std::size_t kWholeUpTo = kPieceSize + 4096;

/// Bytes that a body of this size adds to the window.
std::uint64_t window_bytes(std::size_t size) {
  return size >= static_cast<std::size_t>(kBulk.count()) ? size : 0;
}

/// Size of the next frame of a body of which `offset` bytes were sent.
std::size_t next_size(std::size_t total, std::size_t offset) {
  return total <= kWholeUpTo ? total : std::min(kPieceSize, total - offset);
}

bool is_urgent(std::uint32_t tag) {
  return tag == Heartbeat::kTag || tag == Taken::kTag || tag == FeedWeights::kTag;
}

}  // namespace

void OutgoingStream::push(OutgoingMessage message) {
  const std::uint32_t tag = message.tag;
  auto& line = is_urgent(tag) ? urgent_ : queued_;
  line.push_back({tag, message.version, message.take_body(), 0});
  if (is_urgent(tag) && !front_is_urgent_)
    front_.reset();  // not sent yet; the urgent message goes first
}

OutgoingStream::Frames OutgoingStream::frames_of(const QueuedMessage& message) const {
  Envelope envelope{
      .tag = message.tag, .version = message.version, .sequence = sequence_ + 1, .piece = {}};
  const std::size_t total = message.body.size();
  if (total <= kWholeUpTo)
    return {encode(envelope), message.body};
  envelope.piece = Piece{message.offset, total};
  return {encode(envelope), message.body.part(message.offset, next_size(total, message.offset))};
}

const OutgoingStream::Frames* OutgoingStream::front() {
  if (front_)
    return &*front_;
  if (!urgent_.empty()) {
    front_ = frames_of(urgent_.front());
    front_is_urgent_ = true;
    return &*front_;
  }
  if (queued_.empty())
    return nullptr;
  const std::uint64_t bytes =
      window_bytes(next_size(queued_.front().body.size(), queued_.front().offset));
  if (bytes > 0 && sent_ - taken_ + bytes > static_cast<std::uint64_t>(kWindow.count()))
    return nullptr;
  front_ = frames_of(queued_.front());
  front_is_urgent_ = false;
  return &*front_;
}

void OutgoingStream::pop() {
  const std::size_t size = front_->body.size();
  ++sequence_;
  if (front_is_urgent_) {
    urgent_.pop_front();
  } else {
    sent_ += window_bytes(size);
    QueuedMessage& message = queued_.front();
    message.offset += size;
    if (message.offset == message.body.size())
      queued_.pop_front();
  }
  front_.reset();
  front_is_urgent_ = false;
}

Status OutgoingStream::acknowledge(const Taken& told) {
  if (told.bytes > sent_ || told.bytes < taken_) {
    return invalid_input(
        fmt::format("actor.taken: expected {} to {} bytes, found {}", taken_, sent_, told.bytes));
  }
  taken_ = told.bytes;
  return {};
}

Status Reassembler::check(const Envelope& envelope, const Piece& piece, std::size_t size) const {
  const std::string name = message_name(envelope.tag);
  if (piece.total > static_cast<std::uint64_t>(largest_.count())) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("{}: expected at most {} bytes (transport.max_message), found {}",
                             name,
                             largest_.count(),
                             piece.total)};
  }
  if (pieces_of_ && (envelope.tag != pieces_of_->tag || piece.total != total_)) {
    return invalid_input(fmt::format(
        "expected the next piece of {}, found one of {}", message_name(pieces_of_->tag), name));
  }
  if (piece.offset != body_.size() || size > piece.total - piece.offset) {
    return invalid_input(
        fmt::format("{}: expected the piece at byte {} of {}, found bytes {} to {}",
                    name,
                    body_.size(),
                    piece.total,
                    piece.offset,
                    piece.offset + size));
  }
  return {};
}

Result<std::optional<IncomingMessage>> Reassembler::add(const IncomingMessage& part) {
  using Whole = std::optional<IncomingMessage>;
  const Envelope& envelope = part.envelope();
  // A connection that broke and was re-established may have lost messages.
  if (sequence_ != 0 && envelope.sequence != sequence_ + 1) {
    return invalid_input(fmt::format("{}: expected sequence number {}, found {}",
                                     message_name(envelope.tag),
                                     sequence_ + 1,
                                     envelope.sequence));
  }
  sequence_ = envelope.sequence;
  if (is_urgent(envelope.tag))
    return Whole(part);
  taken_ += window_bytes(part.body().size());
  if (!envelope.piece) {
    if (pieces_of_) {
      return invalid_input(fmt::format("found {} before the last piece of {}",
                                       message_name(envelope.tag),
                                       message_name(pieces_of_->tag)));
    }
    return Whole(part);
  }
  const Piece piece = *envelope.piece;
  TEMPER_TRY_STATUS(check(envelope, piece, part.body().size()));
  try {
    if (!pieces_of_) {
      pieces_of_ = envelope;
      total_ = piece.total;
      body_.reserve(piece.total);  // untouched pages use no memory
    }
    body_.append(part.body());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("not enough memory for {} of {} bytes; lower "
                             "algorithm.groups_per_update or sampling.max_new_tokens",
                             message_name(envelope.tag),
                             piece.total)};
  }
  if (body_.size() < total_)
    return Whole();
  pieces_of_.reset();
  return Whole(IncomingMessage::whole(part, std::exchange(body_, {})));
}

std::optional<Taken> Reassembler::due_ack() {
  if (taken_ - acknowledged_ < static_cast<std::uint64_t>(kAckInterval.count()))
    return std::nullopt;
  acknowledged_ = taken_;
  return Taken{taken_};
}

}  // namespace temper::actors
