// The sentence of every fact. This is the only test of their wording.
#include "orchestrator/record/sentences.hpp"

#include "core/msgpack.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

namespace temper::orchestrator {
namespace {

using actors::SwitchAction;

const std::vector<ActorSpec> kActors{{"rollout-0", actors::RoleKind::Rollout, {}, 4},
                                     {"trainer", actors::RoleKind::Trainer, {}, 0}};
constexpr ActorId kRollout0(0), kTrainer(1);

TEST(Sentences, EveryKindOfWaitHasOne) {
  using K = WaitKind;
  const std::map<K, std::string> kSentences{
      {K::Work, ""},
      {K::Removed, "removed from the run"},
      {K::RestartPause, "pause before a restart"},
      {K::StartSlot, "a free start slot"},
      {K::Start, "worker start"},
      {K::Restart, "worker restart"},
      {K::RoleSwitch, "role switch"},
      {K::Checkpoint, "checkpoint"},
      {K::Evaluation, "evaluation"},
      {K::EndOfRun, "end of run"},
      {K::Dispatch, "groups not dispatched yet"},
      {K::Groups, "groups"},
      {K::Weights, "new weights"},
      {K::StalenessBound, "throttled by the staleness bound"},
      {K::TrainerDemand, "held back until the trainer needs it"},
      {K::Responses, "responses"},
      {K::SharedCards, "a turn on the time-shared cards"}};
  EXPECT_EQ(kSentences.size(), EnumNames<K>::value.size());
  for (const auto& [kind, words] : kSentences)
    EXPECT_EQ(sentence(WaitCause{kind}), words) << name_of(kind);
}

TEST(Sentences, AWaitNamesItsInstanceWhereItHasOne) {
  const WaitCause groups{WaitKind::Groups, GroupId(7), PolicyVersion(3), 1, 4};
  EXPECT_EQ(sentence(groups), "groups: 7 (v0 3) and others, 1 of 4 ready");
  EXPECT_EQ(sentence(groups.without_instance()), "groups");
  EXPECT_EQ(sentence({.kind = WaitKind::Dispatch, .ready = 1, .needed = 4}),
            "groups not dispatched yet, 1 of 4 ready");
  const WaitCause evaluation{.kind = WaitKind::Evaluation, .version = PolicyVersion(8)};
  EXPECT_EQ(sentence(evaluation), "evaluation of version 8");
  EXPECT_EQ(sentence(evaluation.without_instance()), "evaluation");
  const WaitCause action{.kind = WaitKind::RoleSwitch, .action = SwitchAction::FreeKv};
  EXPECT_EQ(sentence(action), "role switch (free_kv)");
  EXPECT_EQ(action.without_instance(), action) << "each step of a switch is a separate wait";
  EXPECT_EQ(sentence({.kind = WaitKind::RoleSwitch, .phase = SwitchPhase::Onload}),
            "role switch (onload)");
}

/// One reason of each kind, with all the fields that its sentence uses.
std::map<ReasonKind, std::pair<Reason, std::string>> every_reason() {
  using K = ReasonKind;
  using std::chrono::seconds;
  return {
      {K::WorkerLost, {reason_with(K::WorkerLost, "killed by signal 9"), "killed by signal 9"}},
      {K::ProtocolViolation,
       {reason_with(K::ProtocolViolation, "trainer.trained: groups 1 of a batch of 2"),
        "protocol violation: trainer.trained: groups 1 of a batch of 2"}},
      {K::DeadlinePassed,
       {{.kind = K::DeadlinePassed, .deadline = DeadlineKind::Start, .limit = seconds(30)},
        "did not start within 30s (deadlines.start)"}},
      {K::WeightsNotStaged,
       {reason_with(K::WeightsNotStaged, "no memory"), "could not stage weights: no memory"}},
      {K::WeightsRefused,
       {reason_with(K::WeightsRefused, "no memory"), "could not commit weights: no memory"}},
      {K::SwitchFailed,
       {{.kind = K::SwitchFailed, .action = SwitchAction::FreeKv, .detail = "no memory"},
        "free_kv failed: no memory"}},
      {K::EqualRewards, {{.kind = K::EqualRewards}, "all its rewards are equal"}},
      {K::TooOld, {{.kind = K::TooOld}, "older than the staleness bound allows"}},
      {K::NotGenerated,
       {{.kind = K::NotGenerated, .count = 1, .of = 4},
        "only 1 of its 4 responses are left; the last failure was in generation"}},
      {K::NotScored,
       {{.kind = K::NotScored, .count = 1, .of = 4, .detail = "token 0: log-prob nan"},
        "only 1 of its 4 responses are left; the last failure was in scoring: token 0: log-prob "
        "nan"}},
      {K::NotJudged,
       {{.kind = K::NotJudged, .count = 1, .of = 4, .detail = "the verifier ended"},
        "only 1 of its 4 responses are left; the last failure was in judging: the verifier "
        "ended"}},
      {K::StopRequested, {{.kind = K::StopRequested}, "stopped on request"}},
      {K::StoppedBeforeEvaluation,
       {{.kind = K::StoppedBeforeEvaluation},
        "stopped on request, before the last version was evaluated"}},
      {K::WrongWeights,
       {{.kind = K::WrongWeights,
         .actor = kTrainer,
         .version = PolicyVersion(3),
         .expected = PolicyVersion(4)},
        "trainer started with weights of version 3, expected version 4; check that the checkpoint "
        "folder is complete"}},
      {K::TooManyLosses,
       {{.kind = K::TooManyLosses, .actor = kRollout0, .count = 4}, "rollout-0 was lost 4 times"}},
      {K::TooManyFailedGroups,
       {{.kind = K::TooManyFailedGroups, .group = GroupId(9), .count = 17},
        "17 groups failed since the last step (algorithm.failure_limit)"}},
      {K::NobodyAttached,
       {{.kind = K::NobodyAttached, .actor = kRollout0, .limit = seconds(10)},
        "no worker attached as rollout-0 and became ready within 10s (deadlines.attach), and "
        "the run has no other actor of this role; start one with: temper worker --connect "
        "RUN_DIR/endpoint --key RUN_DIR/keys/NAME.key --slot rollout-0"}},
      {K::OptimizerRefused,
       {reason_with(K::OptimizerRefused, "no memory"),
        "could not load the optimizer from host memory: no memory"}},
      {K::CheckpointFailed,
       {{.kind = K::CheckpointFailed, .version = PolicyVersion(8), .detail = "disk full"},
        "could not save the checkpoint of step 8: disk full"}},
      {K::Aborted, {reason_with(K::Aborted, "disk full"), "disk full"}},
      {K::CannotStart,
       {{.kind = K::CannotStart, .actor = kRollout0, .detail = "No module named 'mine'"},
        "rollout-0 cannot start: No module named 'mine'"}},
      {K::VerifierNeverWorked,
       {reason_with(K::VerifierNeverWorked, "the reply has no reward"),
        "the verifier has not returned a single reward: the reply has no reward"}}};
}

TEST(Sentences, EveryKindOfReasonHasOne) {
  EXPECT_EQ(every_reason().size(), EnumNames<ReasonKind>::value.size());
  for (const auto& [kind, told] : every_reason())
    EXPECT_EQ(sentence(told.first, kActors), told.second) << name_of(kind);
}

TEST(Sentences, EveryDeadlineNamesItsKey) {
  using K = DeadlineKind;
  const std::map<K, std::string> kSentences{
      {K::Start, "did not start within 5s (deadlines.start)"},
      {K::StageWeights, "did not stage weights of version 7 within 5s (deadlines.weights)"},
      {K::CommitWeights, "did not commit weights of version 7 within 5s (deadlines.weights)"},
      {K::Switch, "did not complete free_kv within 5s (deadlines.switching)"},
      {K::Generate, "did not generate 3 responses within 5s (deadlines.generate)"},
      {K::Reference, "did not score 3 responses within 5s (deadlines.reference)"},
      {K::Reward, "did not judge 3 responses within 5s (deadlines.reward)"},
      {K::Train, "did not train on 3 responses within 5s (deadlines.train)"},
      {K::Checkpoint, "did not save a checkpoint within 5s (deadlines.checkpoint)"},
      {K::Drain,
       "stopped on request, but the current step did not end within 5s (deadlines.drain)"},
      {K::LongestStart,
       "did not start within 5s, though it reported progress; raise deadlines.start"}};
  EXPECT_EQ(kSentences.size(), EnumNames<K>::value.size());
  for (const auto& [deadline, words] : kSentences) {
    const Reason reason{.kind = ReasonKind::DeadlinePassed,
                        .version = PolicyVersion(7),
                        .deadline = deadline,
                        .action = SwitchAction::FreeKv,
                        .limit = std::chrono::seconds(5),
                        .count = 3};
    EXPECT_EQ(sentence(reason, kActors), words);
  }
}

TEST(Sentences, AReasonNamesItsActorFirst) {
  Reason reason = reason_with(ReasonKind::WorkerLost, "killed by signal 9");
  reason.actor = kTrainer;
  EXPECT_EQ(sentence(reason, kActors), "trainer: killed by signal 9");
  reason.actor = ActorId(9);
  EXPECT_EQ(sentence(reason, kActors), "actor 9: killed by signal 9")
      << "the run has no such actor";
  EXPECT_EQ(sentence(std::optional<Reason>(), kActors), "");
}

TEST(Sentences, TheEndOfARunTellsTheLastOfSeveralLosses) {
  const Reason losses{.kind = ReasonKind::TooManyLosses, .actor = kRollout0, .count = 4};
  const RunEnd end =
      end_of({false, false, losses, reason_with(ReasonKind::WorkerLost, "killed")}, kActors);
  EXPECT_FALSE(end.ok || end.stopped);
  EXPECT_EQ(end.reason, "rollout-0 was lost 4 times; last: killed");
  const Reason groups{.kind = ReasonKind::TooManyFailedGroups, .group = GroupId(9), .count = 17};
  EXPECT_NE(end_of({false, false, groups, Reason{ReasonKind::EqualRewards}}, kActors)
                .reason.find("; last: group 9: "),
            std::string::npos);
  EXPECT_EQ(end_of({true, false}, kActors).reason, "");
}

TEST(Facts, ReasonsAreStoredAndReadBack) {
  for (const auto& [kind, told] : every_reason()) {
    const auto again = decode<Reason>(encode(told.first));
    ASSERT_TRUE(again) << again.error().context;
    EXPECT_EQ(*again, told.first) << name_of(kind);
  }
}

TEST(Facts, TextFromOutsideIsCutWithoutSplittingACharacter) {
  const auto length = [](const std::string& text) {
    return reason_with(ReasonKind::WorkerLost, text).detail.size();
  };
  constexpr std::size_t kMost = Reason::kMostDetail;
  EXPECT_EQ(length(std::string(kMost, 'x')), kMost);
  EXPECT_EQ(length(std::string(10 * kMost, 'x')), kMost);
  // A character of two, three and four bytes that begins at each of the last bytes.
  for (const std::string character : {"\u00e9", "\u20ac", "\U0001f600"}) {
    for (std::size_t before = 1; before < character.size(); ++before)
      EXPECT_EQ(length(std::string(kMost - before, 'x') + character), kMost - before);
    EXPECT_EQ(length(std::string(kMost - character.size(), 'x') + character), kMost);
  }
  EXPECT_EQ(length(std::string(2 * kMost, '\x80')), 0U) << "not a valid character";
}

}  // namespace
}  // namespace temper::orchestrator
