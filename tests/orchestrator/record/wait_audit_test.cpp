// The auditor, on logs in which an actor is said to wait for what it does not lack.
#include "orchestrator/record/audit.hpp"
#include "orchestrator/scheduler/queue/response_ids.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator::waiting {
namespace {

using actors::CardState;
using actors::FinishReason;
using actors::RoleKind;
using actors::SwitchAction;
using K = WaitKind;

constexpr ActorId kEngine(0), kReference(1), kVerifier(2), kTrainer(3);

/// Engine, reference and trainer on the same cards. A step takes one group of two responses.
SchedulerConfig fused() {
  SchedulerConfig config;
  config.actors = {{"rollout-0", RoleKind::Rollout, {CardId(0)}, 4},
                   {"reference-0", RoleKind::Reference, {CardId(0)}, 0},
                   {"reward-0", RoleKind::Reward, {}, 0},
                   {"trainer", RoleKind::Trainer, {CardId(0)}, 0}};
  config.actors[0].takes_turns = config.actors[1].takes_turns = true;
  config.groups_per_update = 1;
  config.responses_per_group = 2;
  return config;
}

const LeaseId kLease(1);
const std::vector<ResponseId> kResponses{ResponseIds(2).at(GroupId(0), 0),
                                         ResponseIds(2).at(GroupId(0), 1)};

/// A run whose trainer has given its cards to the engine, which has the weights of version 0.
class WaitAuditRun : public ::testing::Test {
 protected:
  WaitAuditRun() {
    feed(event::Started{fused()});
    feed(event::Switched{kTrainer, SwitchAction::OffloadOptimizer, {}, ""});
    feed(event::WeightsCommitted{kEngine, PolicyVersion(0), ""});
  }
  void feed(const Event& event, const Commands& commands = {}) {
    auditor_.feed({next_++, Time(), event, commands});
  }
  void dispatch() {
    feed(event::DeadlineReached{},
         {command::Dispatch{kEngine, kLease, GroupId(0), PolicyVersion(0), kResponses, {}}});
  }
  /// The engine is done with the responses.
  void ends(FinishReason how, const Commands& commands = {}) {
    std::vector<event::Generated::Item> items;
    for (const ResponseId r : kResponses)
      items.push_back({kLease, r, Tokens(4), Tokens(1), {{PolicyVersion(0), Tokens(1)}}, how});
    feed(event::Generated{kEngine, items}, commands);
  }
  /// The engine gives its cards back to the trainer.
  void train() {
    feed(event::Switched{kEngine, SwitchAction::FreeWeights, {}, ""},
         {command::Switch{kTrainer, SwitchAction::OnloadOptimizer, {}}});
  }
  void says(ActorId actor, const WaitCause& cause) {
    feed(event::DeadlineReached{}, {command::Waiting{actor, CardState::WaitData, cause}});
  }
  /// The end of its only violation; empty: it has none.
  std::string violation() const {
    const std::vector<std::string> all = auditor_.report().violations;
    EXPECT_LE(all.size(), 1U);
    return all.empty() ? "" : all.front().substr(all.front().find(": ") + 2);
  }

 private:
  Auditor auditor_;
  std::uint64_t next_ = 0;
};

TEST_F(WaitAuditRun, FindsNothingInATurnOfATrueRun) {
  dispatch();
  says(kVerifier, {K::Responses});
  says(kReference, {K::Responses});
  ends(FinishReason::End,
       {command::Waiting{kReference, CardState::WaitData, {K::SharedCards}},
        command::Waiting{kVerifier, CardState::WaitQuota, {K::StalenessBound}}});
  train();
  EXPECT_EQ(violation(), "");
}

TEST_F(WaitAuditRun, ReportsResponsesThatAreSaidToBeMissingWhileTheyWaitForCards) {
  dispatch();
  says(kVerifier, {K::Responses});
  ends(FinishReason::Interrupted);
  EXPECT_EQ(violation(), "") << "they continue on the same cards";
  train();
  EXPECT_EQ(violation(), "reward-0 waits for responses, but 2 responses wait for cards of engines");
}

TEST_F(WaitAuditRun, ReportsItOnceForEachWait) {
  dispatch();
  ends(FinishReason::Interrupted);
  train();
  says(kVerifier, {K::Responses});
  says(kTrainer, {.kind = K::Groups, .group = GroupId(0)});
  EXPECT_NE(violation(), "");
}

TEST_F(WaitAuditRun, CountsTheResponsesOfALostEngineAsHandedBack) {
  dispatch();
  says(kVerifier, {K::Responses});
  feed(event::ActorDown{kEngine, "crashed"}, {command::Launch{kEngine, {}}});
  EXPECT_EQ(violation(), "");
  train();
  EXPECT_NE(violation(), "");
}

TEST_F(WaitAuditRun, ReportsResponsesThatAReferenceHasAndSaysItLacks) {
  dispatch();
  says(kReference, {K::Responses});
  ends(FinishReason::End);
  EXPECT_EQ(violation(), "reference-0 waits for responses, but 2 responses wait to be scored");
}

TEST_F(WaitAuditRun, ReportsResponsesThatNobodyGenerates) {
  train();
  says(kVerifier, {K::Responses});
  EXPECT_EQ(
      violation(),
      "reward-0 waits for responses, but none is generated, and others hold cards of engines");
}

class OtherCauses : public WaitAuditRun, public ::testing::WithParamInterface<WaitKind> {};

TEST_P(OtherCauses, AreReportedWhileResponsesAreGenerated) {
  dispatch();
  says(kVerifier, {GetParam()});
  EXPECT_NE(violation().find("2 responses are generated"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(WaitAudit,
                         OtherCauses,
                         ::testing::Values(K::StalenessBound,
                                           K::TrainerDemand,
                                           K::Weights,
                                           K::EndOfRun,
                                           K::SharedCards));

TEST_F(WaitAuditRun, ReportsATrainerThatWaitsForGroupsItHas) {
  dispatch();
  says(kTrainer, {.kind = K::Groups, .group = GroupId(0)});
  EXPECT_EQ(violation(), "");
  says(kTrainer, {K::Dispatch});
  EXPECT_EQ(violation(), "the trainer waits for dispatch, but 1 groups are not ready");
}

TEST_F(WaitAuditRun, ReportsATrainerThatWaitsForCardsWithoutABatch) {
  dispatch();
  says(kTrainer, {K::RoleSwitch});
  EXPECT_EQ(violation(), "the trainer waits for its cards, but has no complete batch");
}

}  // namespace
}  // namespace temper::orchestrator::waiting
