// Why actors are idle, as it is said, and turns of shared cards that would be for nothing.
#include "tests/support/scheduler_world.hpp"
#include "tests/support/scripted_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::CardState;
using actors::RoleKind;
using testing::World;

/// Four engines, a reference and a trainer with cards of their own, and gradients that are computed
/// as soon as a group is there.
SchedulerConfig preparing() {
  SchedulerConfig c;
  for (std::uint32_t i = 0; i < 4; ++i)
    c.actors.push_back({fmt::format("rollout-{}", i), RoleKind::Rollout, {CardId(i)}, 4});
  c.actors.push_back({"reference-0", RoleKind::Reference, {CardId(4)}, 0});
  c.actors.push_back({"reward-0", RoleKind::Reward, {}, 0});
  c.actors.push_back({"trainer", RoleKind::Trainer, {CardId(5)}, 0});
  c.steps = 8;
  c.groups_per_update = 6;
  c.responses_per_group = 2;
  c.staleness_bound = 1;
  c.stragglers.prepare = true;
  return c;
}

/// Every command of runs in several worlds, in order.
void for_each_command(const SchedulerConfig& config,
                      const std::function<void(const Command&)>& look) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    World world(config, {}, seed);
    world.on_record = [&](const Record& record) {
      for (const Command& command : record.commands)
        look(command);
    };
    const testing::Played played = world.play();
    EXPECT_TRUE(played.finish.ok) << played.why();
    EXPECT_EQ(played.audit.violations, std::vector<std::string>{});
  }
}

TEST(Waits, ATrainerThatWaitsDoesNotNameAGroupThatItHas) {
  const SchedulerConfig config = preparing();
  const ResponseIds ids(config.responses_per_group);
  std::set<GroupId> promised;
  int named = 0;
  for_each_command(config, [&](const Command& command) {
    if (const auto* prepare = std::get_if<command::Prepare>(&command)) {
      for (const ResponseId r : prepare->responses)
        promised.insert(ids.group_of(r));
    } else if (std::holds_alternative<command::Train>(command)) {
      promised.clear();
    } else if (const auto* wait = std::get_if<command::Waiting>(&command);
               wait != nullptr && wait->state == CardState::WaitData &&
               wait->cause.kind == WaitKind::Groups && !promised.empty()) {
      ++named;
      EXPECT_FALSE(promised.contains(wait->cause.group.value()));
      EXPECT_EQ(wait->cause.needed, 6U);
      EXPECT_GT(wait->cause.ready, 0U) << promised.size() << " are promised";
    }
  });
  EXPECT_GT(named, 0);
}

TEST(Waits, AnIdleEngineSaysWhenTheReasonChangesFromTheRuleToAFedTrainer) {
  SchedulerConfig config = preparing();
  config.stragglers.prepare = false;
  config.admission = Admission::JustInTime;
  config.steps = 30;
  config.groups_per_update = 2;
  std::map<ActorId, command::Waiting> last;
  int changed = 0;
  for_each_command(config, [&](const Command& command) {
    const auto* wait = std::get_if<command::Waiting>(&command);
    if (wait == nullptr)
      return;
    const auto before = last.find(wait->actor);
    changed += before != last.end() && before->second.state == CardState::WaitQuota &&
               wait->state == CardState::WaitQuota && wait->cause.kind != before->second.cause.kind;
    last[wait->actor] = *wait;
  });
  EXPECT_GT(changed, 0);
}

TEST(Waits, AReferenceWhoseResponsesWaitForItsCardsDoesNotSayThatItWaitsForResponses) {
  SchedulerConfig config = preparing();
  config.stragglers.prepare = false;
  for (const bool shared : {false, true}) {
    for (ActorSpec& actor : config.actors)
      actor.takes_turns =
          shared && (actor.role == RoleKind::Rollout || actor.role == RoleKind::Reference);
    std::map<WaitKind, int> told;
    for_each_command(config, [&](const Command& command) {
      if (const auto* wait = std::get_if<command::Waiting>(&command);
          wait != nullptr && config.actors[wait->actor.value()].role == RoleKind::Reference)
        ++told[wait->cause.kind];
    });
    EXPECT_GT(told[WaitKind::Responses], 0);
    EXPECT_EQ(told[WaitKind::SharedCards] > 0, shared);
  }
}

TEST(Waits, ATrainerThatAnEvaluationHeldUpSaysWhatItWaitsForAfterwards) {
  SchedulerConfig config = preparing();
  config.stragglers.prepare = false;
  config.evaluation.every = 1;
  config.evaluation.problems = 4;
  for (ActorSpec& actor : config.actors)
    actor.takes_turns = actor.role == RoleKind::Rollout || actor.role == RoleKind::Reference;
  std::optional<WaitKind> last;
  int after = 0;
  for_each_command(config, [&](const Command& command) {
    const auto* wait = std::get_if<command::Waiting>(&command);
    if (wait == nullptr || config.actors[wait->actor.value()].role != RoleKind::Trainer)
      return;
    after += last == WaitKind::Evaluation && wait->state == CardState::WaitData ? 1 : 0;
    last = wait->cause.kind;
  });
  EXPECT_GT(after, 0);
}

TEST(Turns, ScoringDoesNotEndBeforeAReferenceThatCameBackIsOnTheCards) {
  using actors::RoleKind;
  using actors::SwitchAction;
  SchedulerConfig config = testing::ScriptedRun::small_config();
  for (ActorSpec& actor : config.actors)
    actor.takes_turns = actor.role == RoleKind::Rollout || actor.role == RoleKind::Reference;
  const ActorId late(static_cast<std::uint32_t>(config.actors.size()));
  config.actors.push_back({"reference-1", RoleKind::Reference, {}, 0, true});
  testing::ScriptedRun run(config);
  run.until<command::ScoreReference>();
  const command::ScoreReference work = run.last<command::ScoreReference>();
  ASSERT_NE(work.actor, late);
  run.on(event::ActorDown{late, "crashed"});
  run.ready(late);
  ASSERT_EQ(run.scheduler().fleet().state(late).switching, SwitchAction::OnloadReference);
  const Commands said = run.on(event::ReferenceScored{work.actor, work.lease});
  for (const Command& command : said) {
    const auto* change = std::get_if<command::Switch>(&command);
    EXPECT_TRUE(change == nullptr || change->action != SwitchAction::OffloadReference);
  }
  const event::Switched came{late, SwitchAction::OnloadReference, {}, ""};
  EXPECT_EQ(run.scheduler().find_invalid_claim(came, run.now()), std::nullopt);
}

TEST(Turns, CardsAreNotTakenForGroupsThatAReferenceElsewhereHasToScoreFirst) {
  SchedulerConfig config = preparing();
  for (ActorSpec& actor : config.actors)
    actor.takes_turns = actor.role == RoleKind::Rollout;
  config.switching = Switching::OneByOne;
  config.shares = {1, 2, 3, 4};
  config.staleness_bound = 0;
  int turns = 0, useless = 0;
  bool worked = true;
  for_each_command(config, [&](const Command& command) {
    if (std::holds_alternative<command::Train>(command) ||
        std::holds_alternative<command::Prepare>(command))
      worked = true;
    const auto* change = std::get_if<command::Switch>(&command);
    if (change == nullptr)
      return;
    if (change->action == actors::SwitchAction::OnloadOptimizer) {
      ++turns;
      worked = false;
    } else if (change->action == actors::SwitchAction::OffloadOptimizer && !worked) {
      ++useless;
    }
  });
  EXPECT_GT(turns, 20);
  EXPECT_EQ(useless, 0) << "of " << turns;
}

}  // namespace
}  // namespace temper::orchestrator
