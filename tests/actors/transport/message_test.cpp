#include "actors/transport/message.hpp"

#include "actors/protocol/catalog.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

TEST(Message, ReadsBackEqual) {
  const auto message =
      IncomingMessage::from(outgoing(CommitWeights{.version = PolicyVersion(7)}), 5);
  EXPECT_TRUE(message.is<CommitWeights>());
  EXPECT_EQ(message.envelope().sequence, 5U);
  EXPECT_EQ(message.decode<CommitWeights>().value().version, PolicyVersion(7));
}

TEST(Message, RejectsAHeadThatIsNotAnEnvelope) {
  EXPECT_FALSE(IncomingMessage::parse({.peer = {}, .head = "garbage", .body = "b", .owner = {}}));
}

TEST(Message, NamesTheExpectedAndTheReceivedType) {
  const auto read = IncomingMessage::from(outgoing(Stop{})).decode<CommitWeights>();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().context, "expected weights.commit, received actor.stop");
}

TEST(Message, NamesTheNextStepForAnOldVersion) {
  OutgoingMessage old = outgoing(Stop{});
  old.version = 0;
  const auto read = IncomingMessage::from(old).decode<Stop>();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(read.error().context,
            "actor.stop: version 0 is too old, expected at least 1; update the sender");
}

TEST(Message, NamesTheMessageOfACorruptBody) {
  OutgoingMessage broken = outgoing(CommitWeights{});
  broken.body = "\xdd\xff\xff\xff\xff";
  const auto read = IncomingMessage::from(broken).decode<CommitWeights>();
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().context.starts_with("weights.commit: ")) << read.error().context;
}

TEST(Message, NamesUnknownTags) {
  EXPECT_EQ(message_name(Stop::kTag), "actor.stop");
  EXPECT_EQ(message_name(999), "message 999");
}

}  // namespace
}  // namespace temper::actors
