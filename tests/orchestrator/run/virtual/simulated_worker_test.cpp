// A worker of simulated actors, told by hand.
#include "orchestrator/worker/roles/simulated_worker.hpp"

#include "tests/support/simulated_fakes.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using testing::FakeActor;

class Worker : public ::testing::Test {
 protected:
  /// The answer; of a message that is refused: none.
  std::optional<actors::Advanced> ask(actors::Advance request) {
    std::optional<actors::Advanced> answer;
    actors::Outbox out([&](actors::OutgoingMessage m) {
      answer = actors::IncomingMessage::from(std::move(m)).decode<actors::Advanced>().value();
    });
    const Status status =
        worker_.on_message(actors::IncomingMessage::from(actors::outgoing(request)), out);
    EXPECT_EQ(status.has_value(), answer.has_value());
    return answer;
  }
  static actors::Advance::Act launch(std::uint32_t actor, actors::RoleKind kind) {
    actors::RoleConfig role;
    role.kind = kind;
    return {ActorId(actor), role, {}};
  }
  static Time at(std::int64_t s) { return Time(std::chrono::seconds(s)); }
  static actors::Carried carried(const actors::OutgoingMessage& m) {
    return {m.tag, m.version, m.body};
  }

 private:
  SimulatedWorker worker_{
      [](const actors::RoleConfig& role) -> Result<std::unique_ptr<actors::SimulatedActor>> {
        if (role.kind == actors::RoleKind::Reference)
          return invalid_input("no reference today");
        return std::unique_ptr<actors::SimulatedActor>(std::make_unique<FakeActor>(role.kind));
      }};
};

TEST_F(Worker, AnswersForEachActorInTheOrderAsked) {
  const auto launched =
      ask({at(0), {launch(7, actors::RoleKind::Reward), launch(3, actors::RoleKind::Trainer)}});
  ASSERT_TRUE(launched);
  ASSERT_EQ(launched->acts.size(), 2U);
  EXPECT_EQ(launched->acts[0].next, at(2));  // FakeActor starts in two seconds.
  EXPECT_TRUE(launched->acts[0].said.empty());

  const auto started = ask({at(2), {{ActorId(7), {}, {}}, {ActorId(3), {}, {}}}});
  ASSERT_TRUE(started);
  ASSERT_EQ(started->acts[0].said.size(), 1U);
  EXPECT_EQ(started->acts[0].said[0].tag, actors::Ready::kTag);
  EXPECT_EQ(started->acts[1].said[0].tag, actors::TrainerReady::kTag);
  EXPECT_FALSE(started->acts[0].next);
}

TEST_F(Worker, PassesOnWhatTheyAreTold) {
  ASSERT_TRUE(ask({at(0), {launch(1, actors::RoleKind::Trainer)}}));
  ASSERT_TRUE(ask({at(2), {{ActorId(1), {}, {}}}}));
  const auto saved = ask(
      {at(5),
       {{ActorId(1), {}, {carried(actors::outgoing(actors::SaveState{PolicyVersion(4), ""}))}}}});
  ASSERT_TRUE(saved);
  ASSERT_EQ(saved->acts[0].said.size(), 1U);
  EXPECT_EQ(saved->acts[0].said[0].tag, actors::StateSaved::kTag);
}

TEST_F(Worker, NamesWhatFailedAndLetsNobodyActAfterIt) {
  const auto answer = ask({at(0),
                           {launch(0, actors::RoleKind::Reward),
                            launch(1, actors::RoleKind::Reference),
                            launch(2, actors::RoleKind::Reward)}});
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->acts.size(), 2U);
  EXPECT_EQ(answer->acts[0].error, "");
  EXPECT_EQ(answer->acts[1].error, "no reference today");
}

TEST_F(Worker, RefusesAnActorThatWasNeverMadeAndTimeThatGoesBack) {
  EXPECT_FALSE(ask({at(0), {{ActorId(9), {}, {}}}}));
  ASSERT_TRUE(ask({at(3), {launch(0, actors::RoleKind::Reward)}}));
  EXPECT_FALSE(ask({at(2), {{ActorId(0), {}, {}}}}));
}

}  // namespace
}  // namespace temper::orchestrator
