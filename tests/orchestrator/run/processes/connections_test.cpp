// Connections: who is let in for an actor slot, and who is not.
#include "orchestrator/run/processes/connections.hpp"

#include "tests/support/times.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

using actors::Hello;
using actors::PeerId;

constexpr ActorId kTrainer(0), kEngine(1), kOther(2);
constexpr std::int64_t kPid = 1234;

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

// --- Workers that others start

constexpr std::string_view kRun = "this-run";

/// A trainer of the run's own, and two rollout slots and a reward that are waited for.
Connections waiting() {
  Connections c({"trainer", "rollout-0", "rollout-1", "reward-0"}, "secret");
  for (const std::uint32_t i : {1U, 2U, 3U}) {
    c.attach(ActorId(i));
    c.await(ActorId(i));
  }
  return c;
}

Hello attached(std::string place, std::string was = "") {
  Hello hello;
  hello.name = std::move(place);
  hello.secret = "secret";
  hello.attached = true;
  hello.was = std::move(was);
  hello.run = kRun;
  return hello;
}

Applicant with_key(std::string place = "any") {
  return {"key-1", std::move(place), std::string(kRun), 3};
}

Result<ActorId> apply(Connections& c,
                      char who,
                      const Hello& hello,
                      const Applicant& a = with_key()) {
  return c.admit_attached(peer(who), hello, a, at(1));
}

TEST(AttachedConnections, AWorkerIsGivenTheSlotThatItNamesOrTheFirstOfItsRole) {
  Connections c = waiting();
  EXPECT_EQ(apply(c, 'a', attached("rollout-1")).value(), ActorId(2));
  EXPECT_EQ(apply(c, 'b', attached("rollout")).value(), ActorId(1));
  EXPECT_EQ(apply(c, 'c', attached("any")).value(), ActorId(3));
}

TEST(AttachedConnections, ARankCountsTheSlotsThatAreWaitedForAndTakesAnotherWhereItsOwnIsTaken) {
  Connections c = waiting();
  EXPECT_EQ(apply(c, 'a', attached("#2")).value(), ActorId(3));
  EXPECT_EQ(apply(c, 'b', attached("#2")).value(), ActorId(1));
  EXPECT_EQ(apply(c, 'c', attached("#64")).value(), ActorId(2));
}

TEST(AttachedConnections, AWorkerThatComesBackHasItsOldSlotIfThatIsFree) {
  Connections c = waiting();
  EXPECT_EQ(apply(c, 'a', attached("rollout", "rollout-1")).value(), ActorId(2));
  EXPECT_EQ(apply(c, 'b', attached("rollout", "rollout-1")).value(), ActorId(1));
}

TEST(AttachedConnections, WhereEveryPlaceIsTakenItMayComeAgain) {
  Connections c = waiting();
  ASSERT_TRUE(apply(c, 'a', attached("rollout-0")));
  EXPECT_EQ(apply(c, 'b', attached("rollout-0")).error().code, ErrorCode::Unavailable);
  c.forget(ActorId(1));  // lost, and not yet waited for again
  EXPECT_EQ(apply(c, 'b', attached("rollout-0")).error().code, ErrorCode::Unavailable);
  c.await(ActorId(1));
  EXPECT_EQ(apply(c, 'b', attached("rollout-0")).value(), ActorId(1));
}

TEST(AttachedConnections, AHelloThatIsSaidTwiceChangesNothing) {
  Connections c = waiting();
  EXPECT_EQ(apply(c, 'a', attached("rollout")).value(), ActorId(1));
  EXPECT_EQ(apply(c, 'a', attached("rollout")).value(), ActorId(1));
  EXPECT_EQ(c.peers().size(), 1U);
}

TEST(AttachedConnections, AKeyIsForWhatItWasMadeFor) {
  Connections c = waiting();
  const auto refused = apply(c, 'a', attached("rollout"), with_key("reward"));
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(refused.error().context, "the key key-1 is for reward, not for rollout");
  EXPECT_EQ(apply(c, 'a', attached("any"), with_key("reward")).value(), ActorId(3));
  EXPECT_EQ(c.connected_by("key-1"), std::vector{ActorId(3)});
}

TEST(AttachedConnections, ASlotThatTheRunStartsItselfIsNotGivenAway) {
  Connections c = waiting();
  const auto refused = apply(c, 'a', attached("trainer"));
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(refused.error().context.find("no worker is waited for as \"trainer\""),
            std::string::npos);
}

TEST(AttachedConnections, AWorkerOfAnotherRunIsRefusedByTheNameOfBoth) {
  Connections c = waiting();
  Hello other = attached("rollout");
  other.run = "that-run";
  EXPECT_EQ(apply(c, 'a', other).error().context,
            "its key is of run that-run, and this is run this-run");
}

TEST(AttachedConnections, AWorkerOfALaterOrchestratorIsNotForThisOne) {
  Connections c = waiting();
  Hello later = attached("rollout");
  later.incarnation = 4;
  const auto refused = apply(c, 'a', later);
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable) << "it looks on for the later one";
  EXPECT_EQ(
      refused.error().context,
      "it has served orchestrator 4 of the run; this is number 3, which that one has succeeded");
  later.incarnation = 2;
  EXPECT_TRUE(apply(c, 'a', later)) << "of an earlier one it is: that is how it joins again";
}

}  // namespace
}  // namespace temper::orchestrator
