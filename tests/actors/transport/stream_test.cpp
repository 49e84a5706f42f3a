// OutgoingStream and Reassembler: pieces, the flow-control window and urgent messages.
#include "actors/transport/stream.hpp"

#include "actors/protocol/catalog.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

constexpr Bytes kLarge{Bytes::rep{1} << 40};

WeightsChunk chunk(std::int64_t bytes) {
  WeightsChunk message;
  message.data.resize(static_cast<std::size_t>(bytes), std::byte{7});
  return message;
}

/// The frames as the receiver gets them.
IncomingMessage arrived(const OutgoingStream::Frames& wire) {
  const auto keep = std::make_shared<OutgoingStream::Frames>(wire);
  return IncomingMessage::parse(
             {.peer = {}, .head = keep->head, .body = keep->body.bytes(), .owner = keep})
      .value();
}

/// Sends everything that may be sent now. Returns the number of body bytes.
std::int64_t send_all(OutgoingStream& stream, std::vector<IncomingMessage>* into = nullptr) {
  std::int64_t bytes = 0;
  while (const OutgoingStream::Frames* wire = stream.front()) {
    bytes += static_cast<std::int64_t>(wire->body.size());
    if (into != nullptr)
      into->push_back(arrived(*wire));
    stream.pop();
  }
  return bytes;
}

TEST(OutgoingStream, SendsASmallMessageWhole) {
  OutgoingStream stream;
  stream.push(outgoing(CommitWeights{PolicyVersion(3)}));
  const OutgoingStream::Frames* wire = stream.front();
  ASSERT_NE(wire, nullptr);
  EXPECT_FALSE(arrived(*wire).envelope().piece);
  EXPECT_EQ(arrived(*wire).decode<CommitWeights>().value().version, PolicyVersion(3));
  stream.pop();
  EXPECT_TRUE(stream.empty());
  EXPECT_EQ(stream.in_flight(), Bytes(0)) << "small bodies do not count toward the window";
}

TEST(OutgoingStream, SplitsALargeBodyIntoPieces) {
  OutgoingStream stream;
  stream.push(outgoing(chunk(5'000'000)));
  std::uint64_t next = 0;
  int pieces = 0;
  while (const OutgoingStream::Frames* wire = stream.front()) {
    const Envelope envelope = arrived(*wire).envelope();
    ASSERT_TRUE(envelope.piece);
    EXPECT_EQ(envelope.piece->offset, next);
    EXPECT_GT(envelope.piece->total, 5'000'000U);
    EXPECT_LE(wire->body.size(), static_cast<std::size_t>(kPiece.count()));
    next += wire->body.size();
    ++pieces;
    stream.pop();
  }
  EXPECT_EQ(pieces, 5);
}

TEST(OutgoingStream, SendsOneWindowAndContinuesAfterAnAcknowledgment) {
  OutgoingStream stream;
  stream.push(outgoing(chunk(3 * kWindow.count())));
  EXPECT_EQ(send_all(stream), kWindow.count());
  EXPECT_FALSE(stream.empty());
  ASSERT_TRUE(stream.acknowledge({5 << 20}));
  EXPECT_EQ(send_all(stream), 5 << 20);
  EXPECT_EQ(stream.in_flight(), kWindow);
}

TEST(OutgoingStream, SendsAHeartbeatAheadOfQueuedMessages) {
  OutgoingStream stream;
  stream.push(outgoing(chunk(3 * kWindow.count())));
  stream.push(outgoing(CommitWeights{}));
  ASSERT_NE(stream.front(), nullptr);  // a piece that was taken as the front but not sent
  stream.push(outgoing(Heartbeat{}));
  EXPECT_TRUE(arrived(*stream.front()).is<Heartbeat>());
  stream.pop();
  EXPECT_TRUE(arrived(*stream.front()).is<WeightsChunk>());
  send_all(stream);
  EXPECT_EQ(stream.front(), nullptr) << "the window is full";
  stream.push(outgoing(Taken{1}));
  EXPECT_TRUE(arrived(*stream.front()).is<Taken>()) << "it does not count toward the window";
}

TEST(OutgoingStream, KeepsTheOrderOfOtherMessages) {
  OutgoingStream stream;
  stream.push(outgoing(chunk(2'000'000)));
  stream.push(outgoing(CommitWeights{}));
  std::vector<IncomingMessage> sent;
  send_all(stream, &sent);
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_TRUE(sent[1].is<WeightsChunk>());
  EXPECT_TRUE(sent[2].is<CommitWeights>());
  for (std::size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(sent[i].envelope().sequence, i + 1);
}

TEST(OutgoingStream, RejectsAcknowledgmentsOfBytesNeverSent) {
  OutgoingStream stream;
  stream.push(outgoing(chunk(2'000'000)));
  send_all(stream);
  EXPECT_FALSE(stream.acknowledge({3'000'000}));
  EXPECT_TRUE(stream.acknowledge({1'000'000}));
  EXPECT_FALSE(stream.acknowledge({999'999}));
}

TEST(OutgoingStream, SharesOneBodyBetweenReceivers) {
  const Slice body(std::string(4096, 'x'));
  OutgoingStream one, other;
  for (OutgoingStream* stream : {&one, &other})
    stream->push({.tag = WeightsChunk::kTag, .version = 1, .body = {}, .shared = body});
  EXPECT_EQ(one.front()->body.data(), other.front()->body.data());
}

TEST(Reassembler, RestoresAMessageAndAcknowledgesIt) {
  OutgoingStream stream;
  Reassembler reassembler(kLarge);
  const WeightsChunk sent = chunk(3 * kWindow.count());
  stream.push(outgoing(sent));
  std::optional<IncomingMessage> whole;
  while (!stream.empty()) {
    const OutgoingStream::Frames* wire = stream.front();
    ASSERT_NE(wire, nullptr) << "acknowledgments keep the window open";
    auto added = reassembler.add(arrived(*wire));
    stream.pop();
    ASSERT_TRUE(added);
    if (const auto told = reassembler.due_ack()) {
      ASSERT_TRUE(stream.acknowledge(*told));
    }
    if (*added)
      whole = **added;
  }
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->envelope().piece);
  EXPECT_TRUE(whole->decode<WeightsChunk>().value().data == sent.data);
  EXPECT_LT(stream.in_flight(), kAckInterval);
}

TEST(Reassembler, AcceptsAHeartbeatBetweenTwoPieces) {
  OutgoingStream stream;
  Reassembler reassembler(kLarge);
  stream.push(outgoing(chunk(2'000'000)));
  EXPECT_FALSE(reassembler.add(arrived(*stream.front())).value());
  stream.pop();
  stream.push(outgoing(Heartbeat{}));
  EXPECT_TRUE(reassembler.add(arrived(*stream.front())).value()->is<Heartbeat>());
  stream.pop();
  EXPECT_TRUE(reassembler.add(arrived(*stream.front())).value()->is<WeightsChunk>());
}

/// The pieces of a message of 2,000,000 bytes.
std::vector<IncomingMessage> two_pieces() {
  OutgoingStream stream;
  stream.push(outgoing(chunk(2'000'000)));
  std::vector<IncomingMessage> pieces;
  send_all(stream, &pieces);
  return pieces;
}

TEST(Reassembler, RejectsPiecesThatDoNotFitTogether) {
  const auto pieces = two_pieces();
  EXPECT_FALSE(Reassembler(kLarge).add(pieces[1])) << "the second piece came first";
  Reassembler twice(kLarge);
  ASSERT_TRUE(twice.add(pieces[0]));
  EXPECT_FALSE(twice.add(pieces[0]));
  Reassembler between(kLarge);
  ASSERT_TRUE(between.add(pieces[0]));
  EXPECT_FALSE(between.add(IncomingMessage::from(outgoing(CommitWeights{}))));
}

TEST(Reassembler, DetectsALostMessage) {
  OutgoingStream stream;
  Reassembler reassembler(kLarge);
  for (int i = 0; i < 3; ++i)
    stream.push(outgoing(CommitWeights{}));
  std::vector<IncomingMessage> sent;
  send_all(stream, &sent);
  ASSERT_TRUE(reassembler.add(sent[0]));
  const auto added = reassembler.add(sent[2]);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().context, "weights.commit: expected sequence number 2, found 3");
}

TEST(Reassembler, RejectsAnOversizedMessageAtItsFirstPiece) {
  const auto added = Reassembler(Bytes(1'999'999)).add(two_pieces()[0]);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(added.error().context.find("weights.chunk"), std::string::npos);
  EXPECT_NE(added.error().context.find("transport.max_message"), std::string::npos);
}

}  // namespace
}  // namespace temper::actors
