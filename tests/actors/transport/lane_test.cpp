// Lane and Intake: bodies of any size in pieces, a window, and who goes first.
#include "actors/transport/lane.hpp"

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

/// As the frames arrive at the other side.
IncomingMessage arrived(const Lane::Wire& wire) {
  const auto keep = std::make_shared<Lane::Wire>(wire);
  return IncomingMessage::parse(
             {.peer = {}, .head = keep->head, .body = keep->body.bytes(), .owner = keep})
      .value();
}

/// What may be sent now, sent: how many bytes of bodies.
std::int64_t send_all(Lane& lane, std::vector<IncomingMessage>* into = nullptr) {
  std::int64_t bytes = 0;
  while (const Lane::Wire* wire = lane.front()) {
    bytes += static_cast<std::int64_t>(wire->body.size());
    if (into != nullptr)
      into->push_back(arrived(*wire));
    lane.pop();
  }
  return bytes;
}

TEST(Lane, ASmallMessageLeavesAsItIs) {
  Lane lane;
  lane.push(outgoing(CommitWeights{PolicyVersion(3)}));
  const Lane::Wire* wire = lane.front();
  ASSERT_NE(wire, nullptr);
  EXPECT_FALSE(arrived(*wire).envelope().piece);
  EXPECT_EQ(arrived(*wire).decode<CommitWeights>().value().version, PolicyVersion(3));
  lane.pop();
  EXPECT_TRUE(lane.empty());
  EXPECT_EQ(lane.on_the_way(), Bytes(0)) << "what is small is not counted";
}

TEST(Lane, ALargeBodyLeavesInPiecesOfWhichNoneIsLargerThanAPiece) {
  Lane lane;
  lane.push(outgoing(chunk(5'000'000)));
  std::uint64_t next = 0;
  int pieces = 0;
  while (const Lane::Wire* wire = lane.front()) {
    const Envelope envelope = arrived(*wire).envelope();
    ASSERT_TRUE(envelope.piece);
    EXPECT_EQ(envelope.piece->offset, next);
    EXPECT_GT(envelope.piece->total, 5'000'000U);
    EXPECT_LE(wire->body.size(), static_cast<std::size_t>(kPiece.count()));
    next += wire->body.size();
    ++pieces;
    lane.pop();
  }
  EXPECT_EQ(pieces, 5);
}

TEST(Lane, AtMostAWindowIsOnTheWayAndMoreOnceItWasTaken) {
  Lane lane;
  lane.push(outgoing(chunk(3 * kWindow.count())));
  EXPECT_EQ(send_all(lane), kWindow.count());
  EXPECT_FALSE(lane.empty());
  ASSERT_TRUE(lane.taken({5 << 20}));
  EXPECT_EQ(send_all(lane), 5 << 20);
  EXPECT_EQ(lane.on_the_way(), kWindow);
}

TEST(Lane, AHeartbeatGoesBeforeAllThatWaits) {
  Lane lane;
  lane.push(outgoing(chunk(3 * kWindow.count())));
  lane.push(outgoing(CommitWeights{}));
  ASSERT_NE(lane.front(), nullptr);  // a piece that was looked at, and did not fit
  lane.push(outgoing(Heartbeat{}));
  EXPECT_TRUE(arrived(*lane.front()).is<Heartbeat>());
  lane.pop();
  EXPECT_TRUE(arrived(*lane.front()).is<WeightsChunk>());
  send_all(lane);
  EXPECT_EQ(lane.front(), nullptr) << "the window is full";
  lane.push(outgoing(Taken{1}));
  EXPECT_TRUE(arrived(*lane.front()).is<Taken>()) << "it counts in no window";
}

TEST(Lane, EverythingElseKeepsItsOrder) {
  Lane lane;
  lane.push(outgoing(chunk(2'000'000)));
  lane.push(outgoing(CommitWeights{}));
  std::vector<IncomingMessage> sent;
  send_all(lane, &sent);
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_TRUE(sent[1].is<WeightsChunk>());
  EXPECT_TRUE(sent[2].is<CommitWeights>());
  for (std::size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(sent[i].envelope().sequence, i + 1);
}

TEST(Lane, MoreThanWasSentCannotHaveBeenTaken) {
  Lane lane;
  lane.push(outgoing(chunk(2'000'000)));
  send_all(lane);
  EXPECT_FALSE(lane.taken({3'000'000}));
  EXPECT_TRUE(lane.taken({1'000'000}));
  EXPECT_FALSE(lane.taken({999'999}));
}

TEST(Lane, WhoIsSentTheSameSharesItsBytes) {
  const Slice body(std::string(4096, 'x'));
  Lane one, other;
  for (Lane* lane : {&one, &other})
    lane->push({.tag = WeightsChunk::kTag, .version = 1, .body = {}, .shared = body});
  EXPECT_EQ(one.front()->body.data(), other.front()->body.data());
}

TEST(Intake, PutsAMessageTogetherAndTellsWhatItTook) {
  Lane lane;
  Intake intake(kLarge);
  const WeightsChunk sent = chunk(3 * kWindow.count());
  lane.push(outgoing(sent));
  std::optional<IncomingMessage> whole;
  while (!lane.empty()) {
    const Lane::Wire* wire = lane.front();
    ASSERT_NE(wire, nullptr) << "what is told keeps the window open";
    auto added = intake.add(arrived(*wire));
    lane.pop();
    ASSERT_TRUE(added);
    if (const auto told = intake.to_tell()) {
      ASSERT_TRUE(lane.taken(*told));
    }
    if (*added)
      whole = **added;
  }
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->envelope().piece);
  EXPECT_TRUE(whole->decode<WeightsChunk>().value().data == sent.data);
  EXPECT_LT(lane.on_the_way(), kTellEvery);
}

TEST(Intake, AHeartbeatBetweenTwoPiecesIsNoPiece) {
  Lane lane;
  Intake intake(kLarge);
  lane.push(outgoing(chunk(2'000'000)));
  EXPECT_FALSE(intake.add(arrived(*lane.front())).value());
  lane.pop();
  lane.push(outgoing(Heartbeat{}));
  EXPECT_TRUE(intake.add(arrived(*lane.front())).value()->is<Heartbeat>());
  lane.pop();
  EXPECT_TRUE(intake.add(arrived(*lane.front())).value()->is<WeightsChunk>());
}

/// The pieces of a message of 2,000,000 bytes.
std::vector<IncomingMessage> two_pieces() {
  Lane lane;
  lane.push(outgoing(chunk(2'000'000)));
  std::vector<IncomingMessage> pieces;
  send_all(lane, &pieces);
  return pieces;
}

TEST(Intake, PiecesThatDoNotFitTogetherAreAnError) {
  const auto pieces = two_pieces();
  EXPECT_FALSE(Intake(kLarge).add(pieces[1])) << "not the first";
  Intake twice(kLarge);
  ASSERT_TRUE(twice.add(pieces[0]));
  EXPECT_FALSE(twice.add(pieces[0]));
  Intake between(kLarge);
  ASSERT_TRUE(between.add(pieces[0]));
  EXPECT_FALSE(between.add(IncomingMessage::from(outgoing(CommitWeights{}))));
}

TEST(Intake, AMessageThatWasLostOnTheWayIsNoticedAtTheNext) {
  Lane lane;
  Intake intake(kLarge);
  for (int i = 0; i < 3; ++i)
    lane.push(outgoing(CommitWeights{}));
  std::vector<IncomingMessage> sent;
  send_all(lane, &sent);
  ASSERT_TRUE(intake.add(sent[0]));
  const auto added = intake.add(sent[2]);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().context, "weights.commit is number 3 of its sender, after number 1");
}

TEST(Intake, AMessageOverTheLimitIsRefusedAtItsFirstPieceByItsName) {
  const auto added = Intake(Bytes(1'999'999)).add(two_pieces()[0]);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(added.error().context.find("weights.chunk"), std::string::npos);
  EXPECT_NE(added.error().context.find("transport.max_message"), std::string::npos);
}

}  // namespace
}  // namespace temper::actors
