// CardSharing: whole turns of each mode, what actors may do meanwhile, and switches that fail.
#include "orchestrator/scheduler/sharing/card_sharing.hpp"

#include "tests/orchestrator/scheduler/shared_run.hpp"

#include <map>

namespace temper::orchestrator::testing {
namespace {

using actors::SwitchAction;
using Words = std::vector<std::string>;
using P = SwitchPhase;

// --- What actors may do

struct Allowed {
  bool trains = false, generates = false, gets_weights = false, waits_to_commit = false,
       gets_kv = false, scores = false;
  bool operator==(const Allowed&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Allowed& a) {
  return out << fmt::format("train {} generate {} weights {} wait {} kv {} score {}",
                            a.trains,
                            a.generates,
                            a.gets_weights,
                            a.waits_to_commit,
                            a.gets_kv,
                            a.scores);
}

Allowed allowed(const SharedRun& s, ActorId engine) {
  return {s.sharing.trainer_may_work(),
          s.sharing.may_generate(s.run, engine),
          s.sharing.may_get_weights(s.run, engine),
          s.sharing.must_wait_to_commit(s.run, engine),
          s.sharing.may_get_kv(s.run, engine),
          s.sharing.may_score(s.run, kReference)};
}

/// What holds in each phase of a whole turn with scoring.
std::map<P, Allowed> allowed_in_a_turn(Shared shared, ActorId engine) {
  SharedRun s(small_config(shared));
  std::map<P, Allowed> seen;
  const auto look = [&] { seen[s.phase()] = allowed(s, engine); };
  const auto look_until = [&](P last) {
    for (int i = 0; i < 32 && s.phase() != last; ++i) {
      s.work();
      s.drive();
      look();
    }
  };
  s.state(kTrainer).life = Life::Launching;  // or nothing would be seen of DrainTrain
  s.drive();
  look();
  s.state(kTrainer).life = Life::Ready;
  look_until(P::Rollout);
  for (int i = 0; i < 4; ++i)
    judged_group(s.run);
  s.state(kOther).staging = version(0);  // nor of CutRoute
  s.drive();
  look();
  s.state(kOther).staging.reset();
  look_until(P::Score);
  s.work();
  look();
  s.score_all();
  look_until(P::Train);
  return seen;
}

TEST(CardSharing, LetsEverybodyWorkOnCardsOfTheirOwn) {
  SharedRun s(small_config(Shared::Nothing));
  s.drive();
  EXPECT_EQ(s.phase(), P::Separate);
  EXPECT_EQ(allowed(s, kEngine), (Allowed{true, true, true, false, true, true}));
  EXPECT_TRUE(s.sharing.may_prepare());
  EXPECT_FALSE(s.sharing.old_weights_may_continue());
  EXPECT_TRUE(s.asked.empty());
}

TEST(CardSharing, AllowsInEachPhaseWhatItsCardsHaveRoomFor) {
  constexpr bool kNo = false;
  // train, generate, weights, wait to commit, KV cache, score
  const std::map<P, Allowed> expected = {{P::Train, {true, kNo, kNo, kNo, kNo, kNo}},
                                         {P::DrainTrain, {}},
                                         {P::OffloadOptimizer, {}},
                                         {P::Reshard, {kNo, kNo, true, true, kNo, kNo}},
                                         {P::Bind, {kNo, kNo, true, kNo, kNo, kNo}},
                                         {P::KvAlloc, {kNo, kNo, kNo, kNo, true, kNo}},
                                         {P::Rollout, {kNo, true, true, kNo, true, kNo}},
                                         {P::CutRoute, {}},
                                         {P::Interrupt, {}},
                                         {P::FreeKv, {}},
                                         {P::OffloadWeights, {}},
                                         {P::OnloadReference, {}},
                                         {P::Score, {kNo, kNo, kNo, kNo, kNo, true}},
                                         {P::OffloadReference, {}},
                                         {P::Onload, {}}};
  const auto seen = allowed_in_a_turn(Shared::EnginesAndReference, kOther);
  EXPECT_EQ(seen.size(), expected.size());
  for (const auto& [phase, allowed] : expected) {
    ASSERT_TRUE(seen.contains(phase)) << name_of(phase);
    EXPECT_EQ(seen.at(phase), allowed) << name_of(phase);
  }
}

TEST(CardSharing, NeverStopsAnEngineOrAReferenceWithCardsOfItsOwn) {
  SchedulerConfig config = small_config(Shared::OneEngine);
  config.lending = LendingRule::Always;
  SharedRun s(config);
  for (int i = 0; i < 4; ++i)
    generating_group(s.run, kEngine);
  std::set<P> seen;
  for (int i = 0; i < 32; ++i) {
    s.work();
    s.hand_back();
    s.continue_on(kEngine);  // the lent cards idle, and go back
    s.drive();
    seen.insert(s.phase());
    const Allowed now = allowed(s, kEngine);
    EXPECT_EQ(now, (Allowed{now.trains, true, true, false, true, true})) << name_of(s.phase());
  }
  // Of all phases, DrainTrain and CutRoute pass at once, and scoring takes no turn.
  EXPECT_EQ(seen,
            (std::set{P::Train,
                      P::OffloadOptimizer,
                      P::Reshard,
                      P::Bind,
                      P::KvAlloc,
                      P::Rollout,
                      P::Interrupt,
                      P::FreeKv,
                      P::OffloadWeights,
                      P::Onload}));
}

// --- Together

TEST(CardSharing, TakesAWholeTurnTogether) {
  SharedRun s(small_config(Shared::EnginesAndReference));
  s.drive();
  s.go_to(P::Rollout);
  for (int i = 0; i < 4; ++i)
    judged_group(s.run);
  s.drive();
  s.go_to(P::Score);
  s.score_all();
  s.go_to(P::Train);
  EXPECT_EQ(s.asked_in_words(),
            (Words{"trainer offload_optimizer",
                   "rollout-0 interrupt",
                   "rollout-1 interrupt",
                   "rollout-0 free_kv",
                   "rollout-1 free_kv",
                   "rollout-0 free_weights",
                   "rollout-1 free_weights",
                   "reference-0 onload_reference",
                   "reference-0 offload_reference",
                   "trainer onload_optimizer"}));
  for (const auto& c : s.asked)
    EXPECT_TRUE(c.cards_of.empty());
  EXPECT_FALSE(s.sharing.may_prepare());
  s.drive();  // there is a batch: the trainer keeps the cards
  EXPECT_EQ(s.phase(), P::Train);
}

TEST(CardSharing, LeavesScoringOutWhereTheReferenceHasCardsOfItsOwn) {
  SharedRun s(small_config(Shared::Engines));
  s.drive();
  s.go_to(P::Rollout);
  for (int i = 0; i < 4; ++i)
    trainable_group(s.run);
  s.drive();
  s.go_to(P::Train);
  EXPECT_EQ(std::ranges::count(s.phases, P::Score), 0);
  EXPECT_EQ(s.asked.back().action, SwitchAction::OnloadOptimizer);
}

TEST(CardSharing, ScoresWithoutARolloutWhereScoresMakeABatch) {
  SharedRun s(small_config(Shared::EnginesAndReference));
  judged_group(s.run);
  judged_group(s.run);
  s.drive();
  s.go_to(P::Score);
  EXPECT_EQ(s.asked_in_words(),
            (Words{"trainer offload_optimizer", "reference-0 onload_reference"}));
  s.score_all();
  s.go_to(P::Train);
  EXPECT_TRUE(s.run.select_batch());
}

TEST(CardSharing, KeepsTheTrainersCardsWhileItHasWork) {
  for (int work = 0; work < 4; ++work) {
    SharedRun s(small_config(Shared::Engines));
    if (work == 0)
      s.run.trainer.training = LeaseId(1);
    if (work == 1)
      s.run.trainer.saving = at(60);
    if (work == 2)
      s.run.trainer.prepared = {LeaseId(1)};
    if (work == 3)
      s.run.stop_requested = true;
    s.drive();
    EXPECT_EQ(s.phase(), P::Train) << work;
  }
}

TEST(CardSharing, ReturnsToTrainingOnceAtMostAShareOfTheSlotsGenerates) {
  // Two engines of four slots: a quarter is two responses, one group.
  for (const int generating : {0, 1, 2}) {
    SharedRun s(small_config(Shared::Engines));
    s.drive();
    s.go_to(P::Rollout);
    for (int i = generating; i < 4; ++i)
      trainable_group(s.run);
    for (int i = 0; i < generating; ++i)
      generating_group(s.run, kEngine);
    s.drive();
    EXPECT_EQ(s.phase() != P::Rollout, generating <= 1) << generating;
  }
}

TEST(CardSharing, StaysInRolloutWhileMoreMayBeDispatched) {
  SharedRun s(small_config(Shared::Engines));
  s.drive();
  s.go_to(P::Rollout);
  for (int i = 0; i < 3; ++i)
    trainable_group(s.run);
  s.drive();
  EXPECT_EQ(s.phase(), P::Rollout);  // the bound admits a fourth group
  trainable_group(s.run);
  s.drive();
  EXPECT_EQ(s.phase(), P::Interrupt);
}

TEST(CardSharing, GivesTheCardsToAnEvaluationEvenWhileTheRunDrains) {
  SchedulerConfig config = small_config(Shared::Engines);
  config.evaluation = {.every = 1, .problems = 1, .samples = 1};
  SharedRun s(config);
  publish(s.run, s.run.config.steps);
  s.drive();
  EXPECT_EQ(s.phase(), P::Train);
  s.run.evaluation.begin(version(8), at(0));
  s.drive();
  s.go_to(P::Rollout);
  trainable_group(s.run, 8);
  s.drive();
  EXPECT_EQ(s.phase(), P::Rollout);
}

TEST(CardSharing, CallsAReferenceThatStartsDuringItsTurn) {
  SharedRun s(small_config(Shared::EnginesAndReference));
  s.state(kReference).life = Life::Launching;
  judged_group(s.run);
  judged_group(s.run);
  s.drive();
  s.go_to(P::Score);  // a reference that is away is not waited for
  EXPECT_FALSE(s.sharing.may_score(s.run, kReference));
  s.state(kReference).life = Life::Ready;
  s.drive();
  EXPECT_EQ(s.state(kReference).switching, SwitchAction::OnloadReference);
  EXPECT_EQ(s.phase(), P::Score);
  s.answer(kReference);
  EXPECT_TRUE(s.sharing.may_score(s.run, kReference));
}

TEST(CardSharing, EndsATurnOfScoringOnlyWhenNothingIsLeftAndNobodyComes) {
  SharedRun s(small_config(Shared::EnginesAndReference));
  const GroupId first = judged_group(s.run);
  const GroupId second = judged_group(s.run);
  s.drive();
  s.go_to(P::Score);
  DistQueue& queue = s.run.saved.queue;
  const LeaseId lease =
      queue.lease(Task::Reference, kReference, queue.live_responses(first), at(60));
  do_task(
      s.run, Task::Reference, Field::ReferenceLogprobs, kReference, queue.live_responses(second));
  s.drive();
  EXPECT_EQ(s.phase(), P::Score);  // it has a lease
  for (const ResponseId r : queue.live_responses(first))
    queue.commit(lease, r, Field::ReferenceLogprobs);
  s.state(kReference).switching = SwitchAction::OnloadReference;
  s.drive();
  EXPECT_EQ(s.phase(), P::Score);  // it is on its way
  s.state(kReference).switching.reset();
  s.drive();
  EXPECT_EQ(s.phase(), P::OffloadReference);
}

// --- Switches that fail

TEST(CardSharing, RollsBackWhereTheOptimizerIsRefused) {
  SharedRun s(small_config(Shared::Engines));
  s.drive();
  s.go_to(P::Rollout);
  for (int i = 0; i < 4; ++i)
    trainable_group(s.run);
  s.drive();
  s.go_to(P::Onload);
  EXPECT_EQ(s.answer(kTrainer, "out of memory"), std::nullopt);
  s.drive();
  EXPECT_EQ(s.phase(), P::OffloadOptimizer);
  EXPECT_FALSE(s.run.finished);
  s.go_to(P::Rollout);
  s.drive();
  s.go_to(P::Train);
}

TEST(CardSharing, EndsTheRunAfterTooManyRefusalsInARow) {
  SharedRun s(small_config(Shared::Engines));
  s.drive();
  s.go_to(P::Rollout);
  for (int i = 0; i < 4; ++i)
    trainable_group(s.run);
  for (int refusals = 0; refusals <= RoleSwitch::kMaxRefusals; ++refusals) {
    EXPECT_FALSE(s.run.finished) << refusals;
    s.drive();
    s.go_to(P::Onload);
    EXPECT_EQ(s.answer(kTrainer, fmt::format("refusal {}", refusals)), std::nullopt);
    s.drive();
  }
  EXPECT_TRUE(s.run.finished);
  const auto end = only<command::Finish>(s.run);
  EXPECT_FALSE(end.ok);
  EXPECT_EQ(end.reason, reason_with(ReasonKind::OptimizerRefused, "refusal 3"));
}

TEST(CardSharing, LosesAnActorThatFailsAnyOtherStep) {
  struct Case {
    ActorId actor;
    SwitchAction action;
  };
  for (const Case& c : {Case{kTrainer, SwitchAction::OffloadOptimizer},
                        Case{kEngine, SwitchAction::Interrupt},
                        Case{kEngine, SwitchAction::FreeKv},
                        Case{kEngine, SwitchAction::FreeWeights},
                        Case{kEngine, SwitchAction::AllocateKv},
                        Case{kReference, SwitchAction::OnloadReference},
                        Case{kReference, SwitchAction::OffloadReference}}) {
    SharedRun s(small_config(Shared::EnginesAndReference));
    s.state(c.actor).switching = c.action;
    const auto reason = s.answer(c.actor, "broken");
    ASSERT_TRUE(reason) << name_of(c.action);
    EXPECT_EQ(reason->kind, ReasonKind::SwitchFailed);
    EXPECT_EQ(reason->action, c.action);
    EXPECT_EQ(reason->detail, "broken");
    EXPECT_EQ(s.state(c.actor).switching, std::nullopt);
  }
}

TEST(CardSharing, IgnoresAStepThatNobodyWaitsFor) {
  SharedRun s(small_config(Shared::Engines));
  s.state(kEngine).has_kv = true;
  EXPECT_EQ(s.sharing.on_switched(s.run, {kEngine, SwitchAction::FreeKv, {}, "late"}),
            std::nullopt);
  s.state(kEngine).switching = SwitchAction::Interrupt;
  EXPECT_EQ(s.sharing.on_switched(s.run, {kEngine, SwitchAction::FreeKv, {}, ""}), std::nullopt);
  s.state(kEngine).life = Life::Launching;
  EXPECT_EQ(s.sharing.on_switched(s.run, {kEngine, SwitchAction::Interrupt, {}, ""}), std::nullopt);
  EXPECT_TRUE(s.state(kEngine).has_kv);
  EXPECT_EQ(s.state(kEngine).switching, SwitchAction::Interrupt);
}

TEST(CardSharing, KnowsWhatAStepHasDoneToAnActor) {
  SharedRun s(small_config(Shared::EnginesAndReference));
  const auto done = [&](ActorId actor, SwitchAction action) {
    s.state(actor).switching = action;
    EXPECT_EQ(s.answer(actor), std::nullopt);
  };
  s.state(kEngine).version = version(0);
  done(kEngine, SwitchAction::AllocateKv);
  EXPECT_TRUE(s.state(kEngine).has_kv);
  done(kEngine, SwitchAction::FreeKv);
  EXPECT_FALSE(s.state(kEngine).has_kv);
  EXPECT_EQ(s.state(kEngine).version, version(0));
  done(kEngine, SwitchAction::FreeWeights);
  EXPECT_EQ(s.state(kEngine).version, std::nullopt);
  done(kReference, SwitchAction::OnloadReference);
  EXPECT_TRUE(s.state(kReference).onboard);
  done(kReference, SwitchAction::OffloadReference);
  EXPECT_FALSE(s.state(kReference).onboard);
}

TEST(CardSharing, GivesEachStepItsDeadline) {
  SharedRun s(small_config(Shared::Engines));
  s.run.now = at(100);
  s.drive();
  EXPECT_EQ(s.state(kTrainer).switching, SwitchAction::OffloadOptimizer);
  EXPECT_EQ(s.state(kTrainer).switch_deadline, at(160));
}

TEST(CardSharing, DoesNothingOnceTheRunHasFinished) {
  SharedRun s(small_config(Shared::Engines));
  s.run.finished = true;
  s.drive();
  EXPECT_EQ(s.phase(), P::Train);
  EXPECT_TRUE(s.run.out.empty());
}

}  // namespace
}  // namespace temper::orchestrator::testing
