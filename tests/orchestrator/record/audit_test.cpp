// The auditor, on a log that names what its run does not have.
#include "orchestrator/record/audit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

SchedulerConfig colocated() {
  SchedulerConfig config;
  config.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 4},
                   {"reward-0", actors::RoleKind::Reward, {}, 0},
                   {"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  config.actors[0].takes_turns = true;
  return config;
}

/// What it says of commands that follow a start.
std::vector<std::string> violations_of(const Commands& commands) {
  Auditor auditor;
  auditor.feed({0, Time(), event::Started{colocated()}, commands});
  return auditor.report().violations;
}

bool any_says(const std::vector<std::string>& violations, std::string_view what) {
  return std::ranges::any_of(
      violations, [&](const std::string& v) { return v.find(what) != std::string::npos; });
}

constexpr ActorId kEngine(0), kNobody(7);

TEST(Auditor, CardsOfAnActorThatTheRunDoesNotHaveAreNotSharedOnes) {
  const auto says = [](ActorId of) {
    return any_says(violations_of({command::Switch{
                        ActorId(2), actors::SwitchAction::OnloadOptimizer, {of}}}),
                    "which are its own, are given to others");
  };
  EXPECT_TRUE(says(kNobody));
  EXPECT_FALSE(says(kEngine));
}

TEST(Auditor, WorkForAnActorThatTheRunDoesNotHaveIsAViolation) {
  EXPECT_TRUE(any_says(violations_of({command::Dispatch{
                           kNobody, LeaseId(1), GroupId(0), PolicyVersion(0), {ResponseId(0)}, {}}}),
                       "under a version its engine does not hold"));
  EXPECT_FALSE(
      violations_of({command::ScoreReference{kNobody, LeaseId(1), {ResponseId(0)}}}).empty());
}

/// The engine starts beside the optimizer: only one that takes turns may not have its cache there.
TEST(Auditor, OnlyWhoTakesTurnsIsHeldToIt) {
  const auto says = [](ActorId of) {
    return any_says(violations_of({command::Switch{of, actors::SwitchAction::AllocateKv, {}}}),
                    "a KV cache is allocated beside the optimizer");
  };
  EXPECT_TRUE(says(kEngine));
  EXPECT_FALSE(says(kNobody));
}

}  // namespace
}  // namespace temper::orchestrator
