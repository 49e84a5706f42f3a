// Connections: who is let in for an actor slot, and who is not.
#include "orchestrator/run/processes/connections.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

using actors::Hello;
using actors::PeerId;

constexpr ActorId kTrainer(0), kEngine(1), kOther(2);
constexpr std::int64_t kPid = 1234;

Time at(std::int64_t s) {
  return Time(std::chrono::seconds(s));
}

PeerId peer(char c) {
  return {std::string(4, c)};
}

/// Three slots; rollout-0 is expected as process kPid.
Connections connections() {
  Connections c({"trainer", "rollout-0", "rollout-1"}, "secret");
  c.expect(kEngine, kPid);
  return c;
}

Hello hello(std::string name = "rollout-0", std::int64_t pid = kPid) {
  Hello hello;
  hello.name = std::move(name);
  hello.secret = "secret";
  hello.pid = pid;
  return hello;
}

std::string refusal(Connections& c, const PeerId& who, const Hello& hello) {
  const auto admitted = c.admit(who, hello, at(1));
  EXPECT_FALSE(admitted);
  return admitted ? "" : admitted.error().context;
}

TEST(Connections, AProcessIsLetInForTheSlotItWasStartedFor) {
  Connections c = connections();
  EXPECT_EQ(c.actor_of(peer('a')), std::nullopt);
  EXPECT_EQ(c.peer_of(kEngine), nullptr);
  EXPECT_EQ(c.admit(peer('a'), hello(), at(1)).value(), kEngine);
  EXPECT_EQ(c.actor_of(peer('a')), kEngine);
  ASSERT_NE(c.peer_of(kEngine), nullptr);
  EXPECT_EQ(*c.peer_of(kEngine), peer('a'));
  EXPECT_EQ(c.peer_of(kTrainer), nullptr);
  EXPECT_EQ(c.peers().size(), 1U);
}

TEST(Connections, AStrangerIsRefusedAndToldWhy) {
  Connections c = connections();
  Hello stranger = hello();
  stranger.protocol = actors::kProtocolVersion + 1;
  EXPECT_NE(refusal(c, peer('a'), stranger).find("must be of the same build"), std::string::npos);
  stranger = hello();
  stranger.secret = "guess";
  EXPECT_EQ(refusal(c, peer('a'), stranger), "the secret is not that of this run");
  EXPECT_EQ(refusal(c, peer('a'), hello("rollout-7")), "this run has no actor named \"rollout-7\"");
  EXPECT_EQ(refusal(c, peer('a'), hello("rollout-0", 99)), "rollout-0 is not process 99");
  EXPECT_TRUE(c.peers().empty());
  EXPECT_TRUE(c.admit(peer('a'), hello(), at(1))) << "a refusal leaves no trace";
}

TEST(Connections, TheSecretIsAskedBeforeAnythingOfTheRunIsTold) {
  Connections c = connections();
  Hello stranger = hello("rollout-7", 99);
  stranger.secret = "";
  EXPECT_EQ(refusal(c, peer('a'), stranger), "the secret is not that of this run");
}

TEST(Connections, AGuessIsKnownAsOneAndOfManyRefusalsFewAreLogged) {
  Connections c = connections();
  Hello guess = hello();
  EXPECT_TRUE(c.has_secret(guess));
  guess.secret = "guess";
  EXPECT_FALSE(c.has_secret(guess));
  int logged = 0;
  for (int i = 0; i < 1000; ++i)
    logged += c.note_refusal() ? 1 : 0;
  EXPECT_EQ(logged, 10) << "1, 2, 4, ..., 512";
  EXPECT_EQ(c.refused(), 1000U);
}

TEST(Connections, NobodyIsLetInForASlotThatExpectsNobody) {
  Connections c = connections();
  EXPECT_NE(refusal(c, peer('a'), hello("rollout-1", kPid)), "");
  EXPECT_NE(refusal(c, peer('a'), hello("rollout-1", 0)), "") << "0 is no process";
  c.forget(kEngine);
  EXPECT_NE(refusal(c, peer('a'), hello("rollout-0", kPid)), "");
  EXPECT_NE(refusal(c, peer('a'), hello("rollout-0", 0)), "");
  EXPECT_TRUE(c.peers().empty());
}

TEST(Connections, ASecondConnectionOfASlotIsRefused) {
  Connections c = connections();
  ASSERT_TRUE(c.admit(peer('a'), hello(), at(1)));
  EXPECT_EQ(refusal(c, peer('b'), hello()), "rollout-0 is connected already");
  EXPECT_EQ(*c.peer_of(kEngine), peer('a'));
  EXPECT_EQ(c.actor_of(peer('b')), std::nullopt);
}

TEST(Connections, AHelloThatIsRepeatedIsAnsweredAlike) {
  Connections c = connections();
  ASSERT_TRUE(c.admit(peer('a'), hello(), at(1)));
  EXPECT_EQ(c.admit(peer('a'), hello(), at(2)).value(), kEngine);
  EXPECT_EQ(c.peers().size(), 1U);
}

TEST(Connections, OneConnectionIsOneActor) {
  Connections c = connections();
  c.expect(kOther, 77);
  ASSERT_TRUE(c.admit(peer('a'), hello(), at(1)));
  EXPECT_NE(refusal(c, peer('a'), hello("rollout-1", 77)), "");
  EXPECT_EQ(c.actor_of(peer('a')), kEngine);
  EXPECT_EQ(c.peer_of(kOther), nullptr);
  ASSERT_TRUE(c.admit(peer('b'), hello("rollout-1", 77), at(1)));
  c.forget(kEngine);
  EXPECT_EQ(c.actor_of(peer('b')), kOther) << "the other's connection is its own";
}

TEST(Connections, AReplacedProcessIsAStranger) {
  Connections c = connections();
  ASSERT_TRUE(c.admit(peer('a'), hello(), at(1)));
  c.expect(kEngine, 5678);
  EXPECT_EQ(c.actor_of(peer('a')), std::nullopt) << "what it still sends counts for nothing";
  EXPECT_EQ(c.peer_of(kEngine), nullptr);
  EXPECT_EQ(refusal(c, peer('a'), hello()), "rollout-0 is not process 1234");
  EXPECT_EQ(c.admit(peer('b'), hello("rollout-0", 5678), at(2)).value(), kEngine);
  EXPECT_EQ(c.peers().size(), 1U);
}

TEST(Connections, AProcessThatWasForgottenMayNotComeBack) {
  Connections c = connections();
  ASSERT_TRUE(c.admit(peer('a'), hello(), at(1)));
  c.forget(kEngine);
  c.forget(kEngine);  // Twice is as once.
  EXPECT_EQ(c.actor_of(peer('a')), std::nullopt);
  EXPECT_NE(refusal(c, peer('b'), hello()), "");
}

TEST(Connections, TheSilentAreThoseThatAreConnectedAndWereNotHeard) {
  Connections c({"trainer", "rollout-0", "rollout-1"}, "secret");
  for (const ActorId a : {kTrainer, kEngine, kOther})
    c.expect(a, 100 + a.value());
  ASSERT_TRUE(c.admit(peer('z'), hello("trainer", 100), at(10)));
  ASSERT_TRUE(c.admit(peer('a'), hello("rollout-0", 101), at(10)));
  EXPECT_TRUE(c.silent_since(at(10)).empty()) << "registration is a sign of life";
  c.heard(kTrainer, at(15));
  EXPECT_EQ(c.silent_since(at(11)), std::vector{kEngine}) << "rollout-1 has not come yet";
  auto silent = c.silent_since(at(16));
  std::sort(silent.begin(), silent.end());
  EXPECT_EQ(silent, (std::vector{kTrainer, kEngine}));
  c.forget(kEngine);
  EXPECT_EQ(c.silent_since(at(16)), std::vector{kTrainer});
}

}  // namespace
}  // namespace temper::orchestrator
