// What actors may say: every message, role and stage of the table, and for every claim of it a lie.
#include "tests/support/scripted_run.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace temper::orchestrator::testing {
namespace {

using actors::Claim;
using actors::RoleKind;
using actors::Stage;
using namespace std::chrono_literals;

constexpr std::array kRoles{
    RoleKind::Rollout, RoleKind::Reference, RoleKind::Reward, RoleKind::Trainer};

/// A run one of whose actors of this role is at this stage.
std::pair<ScriptedRun, ActorId> run_with(RoleKind role, Stage stage) {
  ScriptedRun run;
  const ActorId actor = run.with_role(role);
  if (stage == Stage::AtWork)
    run.ready(actor);
  // Once it is replaced at once, the second time after a pause; the trainer takes the run with it.
  for (int i = 0; stage == Stage::Down && i < (role == RoleKind::Trainer ? 1 : 2); ++i)
    run.on(event::ActorDown{actor, "killed"});
  return {std::move(run), actor};
}

TEST(Permissions, OfEveryMessageRoleAndStageAreThoseOfTheTable) {
  std::size_t allowed = 0, all = 0;
  for (const RoleKind role : kRoles) {
    for (const Stage stage : {Stage::Down, Stage::Starting, Stage::AtWork}) {
      const auto [run, actor] = run_with(role, stage);
      ASSERT_EQ(run.scheduler().stage_of(actor), stage) << name_of(role);
      actors::AllMessages::for_each([&, &run = run, actor = actor]<class M>(std::type_identity<M>) {
        bool expected = false;
        for (const actors::Permission& p : actors::kPermissions) {
          expected |= p.message == M::kName && std::ranges::find(p.roles, role) != p.roles.end() &&
                      std::ranges::find(p.stages, stage) != p.stages.end();
        }
        EXPECT_EQ(run.scheduler().may_say(actor, M::kTag), expected)
            << M::kName << " of a " << name_of(role) << " that is " << name_of(stage);
        allowed += expected ? 1 : 0;
        ++all;
      });
    }
  }
  EXPECT_EQ(all, 12 * actors::AllMessages::kSize);
  EXPECT_GT(allowed, 0U);
  EXPECT_LT(allowed, all / 4) << "most is refused";
}

TEST(Permissions, NobodySaysAnythingThatIsNotInTheCatalogue) {
  const auto [run, actor] = run_with(RoleKind::Trainer, Stage::AtWork);
  for (const std::uint32_t tag : {0U, 9U, 1000U, ~0U})
    EXPECT_FALSE(run.scheduler().may_say(actor, tag)) << tag;
}

TEST(Permissions, AreOfMessagesOfTheCatalogueEachOnce) {
  for (const actors::Permission& p : actors::kPermissions) {
    EXPECT_EQ(actors::permission_of(p.tag), &p) << p.message << " is there twice";
    EXPECT_FALSE(p.roles.empty() || p.stages.empty()) << p.message;
    for (const Claim claim : p.claims)
      EXPECT_FALSE(sentence(claim).empty());
  }
}

// --- Claims

struct Case {
  std::string message;
  Claim claim;
  std::function<void(ScriptedRun&)> before;
  std::function<Event(const ScriptedRun&)> lie;
};

event::Generated generated(const ScriptedRun& run) {
  return run.generated(run.last<command::Dispatch>());
}

template <class F>
std::function<Event(const ScriptedRun&)> generated_but(F&& change) {
  return [change](const ScriptedRun& run) {
    event::Generated e = generated(run);
    change(e.items.front());
    return e;
  };
}

template <class F>
std::function<Event(const ScriptedRun&)> trained_but(F&& change) {
  return [change](const ScriptedRun& run) {
    event::Trained e = run.trained(run.last<command::Train>());
    change(e);
    return e;
  };
}

using Item = event::Generated::Item;

void until_dispatch(ScriptedRun& run) {
  run.until<command::Dispatch>();
}
void until_train(ScriptedRun& run) {
  run.until<command::Train>();
}

/// Of an event that is honest but for one thing.
std::vector<Case> lies() {
  const std::string work = "rollout.generated";
  const auto huge = [](Item& i) { i.tokens = Tokens(INT64_MAX); };
  const auto span = [](Duration begin, Duration end) {
    return [=](const ScriptedRun& run) {
      return event::Activity{run.rollout(),
                             {{actors::CardState::Decode, run.now() - begin, run.now() - end}}};
    };
  };
  return {
      {"actor.activity", Claim::SpansInOrder, until_dispatch, span(-1ns, -2ns)},
      {"actor.activity", Claim::SpansInOrder, until_dispatch, span(1ns, 2ns)},
      {"actor.activity", Claim::SpansInOrder, until_dispatch, span(24h, 0ns)},
      {"actor.activity",
       Claim::SpansInOrder,
       [](ScriptedRun& run) {
         until_dispatch(run);
         run.on(event::Activity{run.rollout(),
                                {{actors::CardState::Decode, run.now() - 2ns, run.now()}}});
       },
       span(2ms, 1ms)},
      {"actor.activity",
       Claim::NothingNegative,
       until_dispatch,
       [](const ScriptedRun& run) {
         actors::Usage usage;
         usage.devices = -1;
         return event::Activity{run.rollout(), {}, usage};
       }},
      {work, Claim::LeaseIsItsOwn, until_dispatch, generated_but([](Item& i) {
         i.lease = LeaseId(1000);
       })},
      {work, Claim::LeaseIsItsOwn, until_dispatch, generated_but([](Item& i) {
         i.lease = LeaseId(0);
       })},
      {work,
       Claim::LeaseIsItsOwn,
       until_dispatch,
       [](const ScriptedRun& run) {
         event::Generated e = generated(run);
         e.actor = run.other_rollout();
         return e;
       }},
      {work,
       Claim::LeaseIsItsOwn,
       [](ScriptedRun& run) { run.until<command::Judge>(); },
       [](const ScriptedRun& run) {
         event::Generated e = generated(run);
         e.items.front().lease = run.last<command::Judge>().lease;
         return e;
       }},
      {work, Claim::ResponseIsLeased, until_dispatch, generated_but([](Item& i) {
         i.response = ResponseId(999);
       })},
      {work,
       Claim::ResponseIsLeased,
       until_dispatch,
       [](const ScriptedRun& run) {
         event::Generated e = generated(run);
         e.items.push_back(e.items.front());
         return e;
       }},
      {work, Claim::NothingNegative, until_dispatch, generated_but(huge)},
      {work, Claim::NothingNegative, until_dispatch, generated_but([](Item& i) {
         i.segments = {{PolicyVersion(0), Tokens(-1)}, {PolicyVersion(0), i.tokens + Tokens(1)}};
       })},
      {work, Claim::SegmentsAddUp, until_dispatch, generated_but([](Item& i) {
         i.tokens += Tokens(1);
       })},
      {work, Claim::SegmentsAddUp, until_dispatch, generated_but([](Item& i) {
         i.segments.clear();
       })},
      {work, Claim::HasTokens, until_dispatch, generated_but([](Item& i) {
         i.tokens = Tokens(0);
         i.segments.clear();
       })},
      {work, Claim::HasTokens, until_dispatch, generated_but([](Item& i) {
         i.tokens = Tokens(0);
         i.segments = {{PolicyVersion(0), Tokens(0)}};
         i.finish = actors::FinishReason::Length;
       })},
      {work, Claim::VersionsGoForward, until_dispatch, generated_but([](Item& i) {
         i.segments.front().version = PolicyVersion(std::uint64_t{1} << 40);
       })},
      {work, Claim::HandedBackOnRequest, until_dispatch, generated_but([](Item& i) {
         i.finish = actors::FinishReason::Interrupted;
       })},
      {"reference.scored",
       Claim::LeaseIsItsOwn,
       [](ScriptedRun& run) { run.until<command::ScoreReference>(); },
       [](const ScriptedRun& run) {
         return event::ReferenceScored{run.last<command::ScoreReference>().actor,
                                       run.last<command::Dispatch>().lease};
       }},
      {"reward.judged",
       Claim::LeaseIsItsOwn,
       [](ScriptedRun& run) { run.until<command::Judge>(); },
       [](const ScriptedRun& run) {
         event::Judged e = run.judged(run.last<command::Judge>());
         e.lease = LeaseId(1000);
         return e;
       }},
      {"reward.judged",
       Claim::AnswersAll,
       [](ScriptedRun& run) { run.until<command::Judge>(); },
       [](const ScriptedRun& run) {
         event::Judged e = run.judged(run.last<command::Judge>());
         e.items.pop_back();
         return e;
       }},
      {"reward.judged",
       Claim::ValuesArePossible,
       [](ScriptedRun& run) { run.until<command::Judge>(); },
       [](const ScriptedRun& run) {
         event::Judged e = run.judged(run.last<command::Judge>());
         e.items.front().reward = std::numeric_limits<double>::quiet_NaN();
         return e;
       }},
      {"trainer.trained", Claim::UpdateIsUnderWay, until_train, trained_but([](event::Trained& e) {
         e.lease = LeaseId(1);
       })},
      {"trainer.trained", Claim::NextVersion, until_train, trained_but([](event::Trained& e) {
         e.version = PolicyVersion(0);
       })},
      {"trainer.trained", Claim::GroupsOfTheBatch, until_train, trained_but([](event::Trained& e) {
         e.groups.front() = GroupId(77);
       })},
      {"trainer.trained", Claim::GroupsOfTheBatch, until_train, trained_but([](event::Trained& e) {
         e.groups.push_back(e.groups.front());
       })},
      {"trainer.trained", Claim::NothingNegative, until_train, trained_but([](event::Trained& e) {
         e.metrics.tokens = Tokens(-1);
       })},
      {"trainer.prepared",
       Claim::LeaseIsItsOwn,
       until_dispatch,
       [](const ScriptedRun& run) {
         return event::Prepared{run.with_role(actors::RoleKind::Trainer), LeaseId(1000)};
       }},
      {"trainer.saved",
       Claim::CheckpointIsAwaited,
       until_train,
       [](const ScriptedRun&) {
         return event::CheckpointSaved{PolicyVersion(0), ""};
       }},
      {"trainer.saved",
       Claim::CheckpointIsAwaited,
       [](ScriptedRun& run) { run.until<command::SaveCheckpoint>(); },
       [](const ScriptedRun&) {
         return event::CheckpointSaved{PolicyVersion(0), ""};
       }},
      {"trainer.saved",  // twice
       Claim::CheckpointIsAwaited,
       [](ScriptedRun& run) {
         run.until<command::SaveCheckpoint>();
         run.on(event::CheckpointSaved{PolicyVersion(1), ""});
       },
       [](const ScriptedRun&) {
         return event::CheckpointSaved{PolicyVersion(1), ""};
       }},
      {"weights.staged",
       Claim::StagingIsAwaited,
       until_dispatch,
       [](const ScriptedRun& run) {
         return event::WeightsStaged{run.rollout(), PolicyVersion(0), ""};
       }},
      {"weights.committed",
       Claim::CommitIsAwaited,
       until_dispatch,
       [](const ScriptedRun& run) {
         return event::WeightsCommitted{run.rollout(), PolicyVersion(std::uint64_t{1} << 40), ""};
       }},
      {"placement.switched",
       Claim::SwitchIsAwaited,
       until_dispatch,
       [](const ScriptedRun& run) {
         return event::Switched{run.rollout(), actors::SwitchAction::FreeKv, {}, ""};
       }},
      {"placement.switched",
       Claim::NothingNegative,
       [](ScriptedRun& run) { run.until<command::Switch>(); },
       [](const ScriptedRun& run) {
         actors::SwitchCost cost;
         cost.host_after = Bytes(-1);
         const auto& asked = run.last<command::Switch>();
         return event::Switched{asked.actor, asked.action, cost, ""};
       }},
  };
}

TEST(Claims, ALieIsFoundByTheClaimThatItBreaks) {
  for (const Case& c : lies()) {
    SCOPED_TRACE(c.message + ": " + std::string(sentence(c.claim)));
    ScriptedRun run;
    c.before(run);
    const auto lie = run.scheduler().find_invalid_claim(c.lie(run), run.now());
    ASSERT_TRUE(lie.has_value());
    EXPECT_EQ(lie->claim, c.claim) << lie->what;
    EXPECT_FALSE(lie->what.empty());
  }
}

/// Those of payloads and images, which the scheduler never sees (run/payload_events_test,
/// run/weight_store_test), and of runs with one version per response (generated_claims_test).
bool is_tested_elsewhere(std::string_view message, Claim claim) {
  if (claim == Claim::OneLogprobPerToken || claim == Claim::PieceOfTheImage ||
      claim == Claim::OneVersion || message == "trainer.ready" || message == "weights.fetch")
    return true;
  return (message == "rollout.generated" && claim == Claim::ValuesArePossible) ||
         (message == "reference.scored" && claim != Claim::LeaseIsItsOwn);
}

TEST(Claims, AResponseThatFailsOrIsHandedBackNeedsNoToken) {
  ScriptedRun run;
  until_dispatch(run);
  event::Generated answer = generated(run);
  Item& item = answer.items.front();
  item.tokens = Tokens(0);
  item.segments.clear();
  item.finish = actors::FinishReason::Failed;
  EXPECT_EQ(run.scheduler().find_invalid_claim(answer.actor, item), std::nullopt);
  item.finish = actors::FinishReason::Interrupted;
  const auto lie = run.scheduler().find_invalid_claim(answer.actor, item);
  EXPECT_TRUE(lie && lie->claim == Claim::HandedBackOnRequest);
}

TEST(Claims, AResponseMayEndWithoutAnotherTokenWhereItHasSome) {
  ScriptedRun run;
  until_dispatch(run);
  event::Generated answer = generated(run);
  answer.items.resize(1);
  answer.items.front().finish = actors::FinishReason::Interrupted;
  const ResponseId response = answer.items.front().response;
  run.on(answer);
  const auto& again = run.last<command::Dispatch>();
  ASSERT_NE(std::ranges::find(again.responses, response), again.responses.end());
  const Item rest{again.lease, response, Tokens(5), Tokens(0), {}, actors::FinishReason::Length};
  EXPECT_EQ(run.scheduler().find_invalid_claim(again.actor, rest), std::nullopt);
}

/// What an engine reports of one response costs that response; what concerns the work as a whole
/// costs the engine.
TEST(Claims, OfValuesCostTheResponseAndOthersTheSender) {
  std::size_t responses = 0;
  for (const Case& c : lies()) {
    if (c.message != "rollout.generated")
      continue;
    const bool of_work = c.claim == Claim::LeaseIsItsOwn || c.claim == Claim::ResponseIsLeased ||
                         c.claim == Claim::HandedBackOnRequest;
    EXPECT_EQ(costs_the_response(c.claim), !of_work) << sentence(c.claim);
    responses += of_work ? 0 : 1;
  }
  EXPECT_GT(responses, 5U);
}

TEST(Claims, EveryOneOfTheTableHasALie) {
  for (const actors::Permission& p : actors::kPermissions) {
    if (p.message.starts_with("counted."))
      continue;  // the same events as those of local hardware
    for (const Claim claim : p.claims) {
      const auto all = lies();
      const bool told = std::ranges::any_of(
          all, [&](const Case& c) { return c.message == p.message && c.claim == claim; });
      EXPECT_TRUE(told || is_tested_elsewhere(p.message, claim))
          << p.message << ": " << sentence(claim);
    }
  }
}

TEST(Claims, WhatIsSaidUnderALeaseThatIsOverIsNoLieAndHasNoEffect) {
  ScriptedRun run;
  until_dispatch(run);
  const event::Generated answer = generated(run);
  run.on(answer);
  EXPECT_EQ(run.scheduler().find_invalid_claim(answer, run.now()), std::nullopt);
  const std::string before = run.scheduler().snapshot();
  run.on(answer);
  EXPECT_EQ(run.scheduler().snapshot(), before);
}

TEST(Claims, AReplacementDoesNotAnswerForItsPredecessor) {
  ScriptedRun run;
  until_dispatch(run);
  event::Generated answer = generated(run);
  run.on(event::ActorDown{answer.actor, "killed"});
  run.ready(answer.actor);
  const auto lie = run.scheduler().find_invalid_claim(answer, run.now());
  ASSERT_TRUE(lie.has_value());
  EXPECT_EQ(lie->claim, Claim::LeaseIsItsOwn);
}

TEST(Claims, AnEngineMayUseWhatItCommitsBeforeItsAnswerIsHere) {
  ScriptedRun run;
  run.until<command::SaveCheckpoint>();
  run.on(event::CheckpointSaved{PolicyVersion(1), ""});
  run.until<command::CommitWeights>();
  ASSERT_EQ(run.last<command::CommitWeights>().version, PolicyVersion(1));
  event::Generated answer = generated(run);
  answer.items.front().segments.front().version = PolicyVersion(1);
  answer.actor = run.last<command::CommitWeights>().actor;
  const auto lie = run.scheduler().find_invalid_claim(answer, run.now());
  EXPECT_TRUE(!lie || lie->claim != Claim::VersionsGoForward) << lie->what;
}

}  // namespace
}  // namespace temper::orchestrator::testing
