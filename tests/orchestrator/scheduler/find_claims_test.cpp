// Claims of actors' messages: each kind of message once as it may be, and once for every claim that
// it can break. Those of engines' responses are in generated_claims_test.cpp.
#include "tests/orchestrator/scheduler/busy_run.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace temper::orchestrator::testing {
namespace {

using actors::CardState;
using actors::Claim;
using actors::SwitchAction;

TEST(FindClaims, ChecksScoresAndRewards) {
  using B = const BusyRun&;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  static_assert(kNone != kNone);
  expect_claims({
      {"scores",
       [](B b) -> Event {
         return event::ReferenceScored{kReference, b.scoring};
       }},
      {"scores of which one failed",
       [](B b) -> Event {
         return event::ReferenceScored{kReference, b.scoring, {ResponseId(2)}, "NaN"};
       }},
      {"scores of another task",
       [](B b) -> Event {
         return event::ReferenceScored{kReference, b.generating};
       },
       Claim::LeaseIsItsOwn},
      {"scores of another lease",
       [](B b) -> Event {
         return event::ReferenceScored{kReference, b.scoring, {ResponseId(0)}, "NaN"};
       },
       Claim::AnswersAll},
      {"rewards",
       [](B b) -> Event {
         return event::Judged{kReward, b.judging, {{1}, {-1}}};
       }},
      {"rewards of another actor",
       [](B b) -> Event {
         return event::Judged{kReference, b.judging, {{1}, {1}}};
       },
       Claim::LeaseIsItsOwn},
      {"too few rewards",
       [](B b) -> Event {
         return event::Judged{kReward, b.judging, {{1}}};
       },
       Claim::AnswersAll},
      {"too many rewards",
       [](B b) -> Event {
         return event::Judged{kReward, b.judging, {{1}, {1}, {1}}};
       },
       Claim::AnswersAll},
      {"a reward that is no number",
       [](B b) -> Event {
         return event::Judged{kReward, b.judging, {{1}, {kNone}}};
       },
       Claim::ValuesArePossible},
      {"no number for one that failed",
       [](B b) -> Event {
         return event::Judged{kReward, b.judging, {{1}, {kNone, true}}};
       }},
  });
}

TEST(FindClaims, ChecksWhatATrainerHasDone) {
  using B = const BusyRun&;
  expect_claims({
      {"a step", [](B b) -> Event { return b.trained(); }},
      {"another lease",
       [](B b) -> Event {
         event::Trained e = b.trained();
         e.lease = b.over;
         return e;
       },
       Claim::UpdateIsUnderWay},
      {"another version",
       [](B b) -> Event {
         event::Trained e = b.trained();
         e.version = version(3);
         return e;
       },
       Claim::NextVersion},
      {"other groups",
       [](B b) -> Event {
         event::Trained e = b.trained();
         e.groups.clear();
         return e;
       },
       Claim::GroupsOfTheBatch},
      {"negative tokens",
       [](B b) -> Event {
         event::Trained e = b.trained();
         e.metrics.tokens = Tokens(-1);
         return e;
       },
       Claim::NothingNegative},
      {"negative micro-batches",
       [](B b) -> Event {
         event::Trained e = b.trained();
         e.metrics.micro_batches = -1;
         return e;
       },
       Claim::NothingNegative},
      {"gradients",
       [](B b) -> Event {
         return event::Prepared{kTrainer, b.training};
       }},
      {"gradients under a lease that is over",
       [](B b) -> Event {
         return event::Prepared{kTrainer, b.over};
       }},
      {"gradients of scores",
       [](B b) -> Event {
         return event::Prepared{kTrainer, b.scoring};
       },
       Claim::LeaseIsItsOwn},
      {"a checkpoint",
       [](B) -> Event {
         return event::CheckpointSaved{version(1), ""};
       }},
      {"a checkpoint of another version",
       [](B) -> Event {
         return event::CheckpointSaved{version(0), ""};
       },
       Claim::CheckpointIsAwaited},
  });
  BusyRun idle;
  idle.run.trainer.saving.reset();
  EXPECT_EQ(idle.broken(event::CheckpointSaved{version(1), ""}), Claim::CheckpointIsAwaited);
  const event::Trained step = idle.trained();
  idle.run.trainer.training.reset();
  EXPECT_EQ(idle.broken(step), Claim::UpdateIsUnderWay);
}

TEST(FindClaims, ChecksWeightsAndSwitches) {
  using B = const BusyRun&;
  expect_claims({
      {"staged",
       [](B) -> Event {
         return event::WeightsStaged{kOther, version(1), ""};
       }},
      {"not staged",
       [](B) -> Event {
         return event::WeightsStaged{kOther, version(1), "full"};
       }},
      {"another version staged",
       [](B) -> Event {
         return event::WeightsStaged{kOther, version(0), ""};
       },
       Claim::StagingIsAwaited},
      {"staged unasked",
       [](B) -> Event {
         return event::WeightsStaged{kEngine, version(1), ""};
       },
       Claim::StagingIsAwaited},
      {"committed before it was asked",
       [](B) -> Event {
         return event::WeightsCommitted{kOther, version(1), ""};
       },
       Claim::CommitIsAwaited},
      {"switched",
       [](B) -> Event {
         return event::Switched{kTrainer, SwitchAction::OnloadOptimizer, {}, ""};
       }},
      {"another switch",
       [](B) -> Event {
         return event::Switched{kTrainer, SwitchAction::OffloadOptimizer, {}, ""};
       },
       Claim::SwitchIsAwaited},
      {"a switch unasked",
       [](B) -> Event {
         return event::Switched{kEngine, SwitchAction::FreeKv, {}, ""};
       },
       Claim::SwitchIsAwaited},
      {"a switch in negative time",
       [](B) -> Event {
         actors::SwitchCost cost;
         cost.duration = Duration(-1);
         return event::Switched{kTrainer, SwitchAction::OnloadOptimizer, cost, ""};
       },
       Claim::NothingNegative},
  });
  BusyRun b;
  ActorState& other = b.run.fleet.change(kOther);
  other.staged = true;
  EXPECT_EQ(b.broken(event::WeightsStaged{kOther, version(1), ""}), Claim::StagingIsAwaited);
  other.committing = true;
  EXPECT_EQ(b.broken(event::WeightsCommitted{kOther, version(1), ""}), std::nullopt);
  EXPECT_EQ(b.broken(event::WeightsCommitted{kOther, version(0), ""}), Claim::CommitIsAwaited);
}

TEST(FindClaims, ChecksTheTimesAndAmountsOfAnActivity) {
  using B = const BusyRun&;
  expect_claims({
      {"spans in order",
       [](B) -> Event {
         return event::Activity{
             kEngine, {{CardState::Prefill, at(90), at(95)}, {CardState::Decode, at(95), at(100)}}};
       }},
      {"before the last one",
       [](B) -> Event {
         return event::Activity{kEngine, {{CardState::Decode, at(89), at(95)}}};
       },
       Claim::SpansInOrder},
      {"overlapping",
       [](B) -> Event {
         return event::Activity{
             kEngine, {{CardState::Prefill, at(90), at(95)}, {CardState::Decode, at(94), at(99)}}};
       },
       Claim::SpansInOrder},
      {"backwards",
       [](B) -> Event {
         return event::Activity{kEngine, {{CardState::Decode, at(95), at(94)}}};
       },
       Claim::SpansInOrder},
      {"in the future",
       [](B) -> Event {
         return event::Activity{kEngine, {{CardState::Decode, at(95), at(101)}}};
       },
       Claim::SpansInOrder},
      {"a negative amount",
       [](B) -> Event {
         actors::Usage usage;
         usage.host.peak = Bytes(-1);
         return event::Activity{kEngine, {}, usage};
       },
       Claim::NothingNegative},
      {"a rate that is no number",
       [](B) -> Event {
         actors::Usage usage;
         usage.flops = Flops(std::nan(""));
         return event::Activity{kEngine, {}, usage};
       },
       Claim::NothingNegative},
      {"an amount",
       [](B) -> Event {
         return event::Activity{kEngine, {}, actors::Usage{}};
       }},
  });
}

TEST(FindClaims, FindsNothingInWhatTheDriverReports) {
  const BusyRun b;
  for (const Event& e : std::vector<Event>{event::ActorReady{kEngine, {}},
                                           event::ActorDown{kEngine, "killed"},
                                           event::ActorLoading{kEngine},
                                           event::DeadlineReached{},
                                           event::StopRequested{},
                                           event::ClockRead{kEngine}})
    EXPECT_EQ(b.broken(e), std::nullopt);
}

TEST(FindClaims, LetsAnActorAnswerUnderALeaseThatIsOverButNotUnderItsPredecessors) {
  BusyRun b;
  b.run.saved.queue.revoke_all(kEngine);
  EXPECT_EQ(b.broken(b.generated(b.item())), std::nullopt);
  b.run.fleet.change(kEngine).first_lease = b.run.saved.queue.next_lease();
  EXPECT_EQ(b.broken(b.generated(b.item())), Claim::LeaseIsItsOwn);
}

TEST(FindClaims, KnowTheStageOfEachActor) {
  using actors::Stage;
  BusyRun b;
  const std::array<std::pair<Life, Stage>, 4> stages{{{Life::Launching, Stage::Starting},
                                                      {Life::Ready, Stage::AtWork},
                                                      {Life::Down, Stage::Down},
                                                      {Life::Waiting, Stage::Down}}};
  for (const auto& [life, stage] : stages) {
    b.run.fleet.change(kOther).life = life;
    EXPECT_EQ(stage_of(b.run, kOther), stage);
  }
}

}  // namespace
}  // namespace temper::orchestrator::testing
