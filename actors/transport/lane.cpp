#include "actors/transport/lane.hpp"

#include "actors/protocol/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace temper::actors {
namespace {

constexpr auto kPieceSize = static_cast<std::size_t>(kPiece.count());
/// A chunk of weights is a piece by itself, with some bytes around it.
constexpr std::size_t kWholeUpTo = kPieceSize + 4096;

/// What a body of this size counts in the window.
std::uint64_t counted(std::size_t size) {
  return size >= static_cast<std::size_t>(kBulk.count()) ? size : 0;
}

/// Of the frame that is to be sent next of a body, of which `offset` bytes were sent.
std::size_t next_size(std::size_t total, std::size_t offset) {
  return total <= kWholeUpTo ? total : std::min(kPieceSize, total - offset);
}

bool goes_first(std::uint32_t tag) {
  return tag == Heartbeat::kTag || tag == Taken::kTag || tag == FeedWeights::kTag;
}

}  // namespace

void Lane::push(OutgoingMessage message) {
  const std::uint32_t tag = message.tag;
  auto& line = goes_first(tag) ? first_ : waiting_;
  line.push_back({tag, message.version, message.take_body(), 0});
  if (goes_first(tag) && !front_is_first_)
    front_.reset();  // it was not sent, and now something goes before it
}

Lane::Wire Lane::wire_of(const Waiting& message) const {
  Envelope envelope{
      .tag = message.tag, .version = message.version, .sequence = sequence_ + 1, .piece = {}};
  const std::size_t total = message.body.size();
  if (total <= kWholeUpTo)
    return {encode(envelope), message.body};
  envelope.piece = Piece{message.offset, total};
  return {encode(envelope), message.body.part(message.offset, next_size(total, message.offset))};
}

const Lane::Wire* Lane::front() {
  if (front_)
    return &*front_;
  if (!first_.empty()) {
    front_ = wire_of(first_.front());
    front_is_first_ = true;
    return &*front_;
  }
  if (waiting_.empty())
    return nullptr;
  const std::uint64_t bytes =
      counted(next_size(waiting_.front().body.size(), waiting_.front().offset));
  if (bytes > 0 && sent_ - taken_ + bytes > static_cast<std::uint64_t>(kWindow.count()))
    return nullptr;
  front_ = wire_of(waiting_.front());
  front_is_first_ = false;
  return &*front_;
}

void Lane::pop() {
  const std::size_t size = front_->body.size();
  ++sequence_;
  if (front_is_first_) {
    first_.pop_front();
  } else {
    sent_ += counted(size);
    Waiting& message = waiting_.front();
    message.offset += size;
    if (message.offset == message.body.size())
      waiting_.pop_front();
  }
  front_.reset();
  front_is_first_ = false;
}

Status Lane::taken(const Taken& told) {
  if (told.bytes > sent_ || told.bytes < taken_) {
    return invalid_input(
        fmt::format("{} bytes are said to have arrived, of {} sent", told.bytes, sent_));
  }
  taken_ = told.bytes;
  return {};
}

Status Intake::check(const Envelope& envelope, const Piece& piece, std::size_t size) const {
  const std::string name = message_name(envelope.tag);
  if (piece.total > static_cast<std::uint64_t>(largest_.count())) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("{} of {} bytes: the limit (transport.max_message) is {}",
                             name,
                             piece.total,
                             largest_.count())};
  }
  if (pieces_of_ && (envelope.tag != pieces_of_->tag || piece.total != total_)) {
    return invalid_input(
        fmt::format("a piece of {} within {}", name, message_name(pieces_of_->tag)));
  }
  if (piece.offset != body_.size() || size > piece.total - piece.offset) {
    return invalid_input(fmt::format("a piece of {} from byte {} to {} of {}, where {} are here",
                                     name,
                                     piece.offset,
                                     piece.offset + size,
                                     piece.total,
                                     body_.size()));
  }
  return {};
}

Result<std::optional<IncomingMessage>> Intake::add(const IncomingMessage& part) {
  using Whole = std::optional<IncomingMessage>;
  const Envelope& envelope = part.envelope();
  // A connection that broke and was made again may have lost what was on the way.
  if (sequence_ != 0 && envelope.sequence != sequence_ + 1) {
    return invalid_input(fmt::format("{} is number {} of its sender, after number {}",
                                     message_name(envelope.tag),
                                     envelope.sequence,
                                     sequence_));
  }
  sequence_ = envelope.sequence;
  if (goes_first(envelope.tag))
    return Whole(part);
  taken_ += counted(part.body().size());
  if (!envelope.piece) {
    if (pieces_of_) {
      return invalid_input(fmt::format(
          "{} before {} was whole", message_name(envelope.tag), message_name(pieces_of_->tag)));
    }
    return Whole(part);
  }
  const Piece piece = *envelope.piece;
  TEMPER_TRY_STATUS(check(envelope, piece, part.body().size()));
  try {
    if (!pieces_of_) {
      pieces_of_ = envelope;
      total_ = piece.total;
      body_.reserve(piece.total);  // pages that are not written to cost nothing
    }
    body_.append(part.body());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("no memory for {} of {} bytes: lower algorithm.groups_per_update or "
                             "sampling.max_new_tokens",
                             message_name(envelope.tag),
                             piece.total)};
  }
  if (body_.size() < total_)
    return Whole();
  pieces_of_.reset();
  return Whole(IncomingMessage::whole(part, std::exchange(body_, {})));
}

std::optional<Taken> Intake::to_tell() {
  if (taken_ - told_ < static_cast<std::uint64_t>(kTellEvery.count()))
    return std::nullopt;
  told_ = taken_;
  return Taken{taken_};
}

}  // namespace temper::actors
