// A scheduler that is made from what a checkpoint holds, whatever that is.
#include "tests/support/scripted_run.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator::testing {
namespace {

TEST(Restored, ACheckpointOfARunOfOtherSizesIsAnErrorThatNamesThem) {
  ScriptedRun run;
  run.until<command::Dispatch>();
  const std::string snapshot = run.scheduler().snapshot();
  SchedulerConfig other = run.scheduler().config();
  EXPECT_TRUE(Scheduler::restored(other, snapshot));
  other.responses_per_group = 3;
  const auto refused = Scheduler::restored(other, snapshot);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("updates of 1 groups of 2"), std::string::npos)
      << refused.error().context;
}

TEST(Restored, AnyBitThatIsFlippedIsAnErrorOrAStateThatIsRestoredAsItWas) {
  SchedulerConfig small = ScriptedRun::small_config();
  small.problems.sources = {{"a", "a", 3}, {"b", "b", 5}};
  small.problems.set_aside.easy = 0;
  small.problems.teachers = TeacherPlan{{"x", "y"}, {{1}, {0, 1, 0, 1, 0}}};
  for (ActorSpec& actor : small.actors) {
    if (actor.role == actors::RoleKind::Reference)
      actor.teacher = 0;
  }
  const auto reference =
      std::ranges::find(small.actors, actors::RoleKind::Reference, &ActorSpec::role);
  small.actors.push_back(*reference);
  small.actors.back().teacher = 1;
  ScriptedRun run(small);
  run.until<command::Judge>();
  const std::string whole = run.scheduler().snapshot();
  const SchedulerConfig config = run.scheduler().config();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const auto restored = Scheduler::restored(config, changed);
    if (!restored)
      continue;
    const std::string again = restored->snapshot();
    const auto twice = Scheduler::restored(config, again);
    ASSERT_TRUE(twice) << "bit " << bit;
    EXPECT_EQ(twice->snapshot(), again) << "bit " << bit;
  }
}

TEST(Restored, AResumeThatNamesResponsesOfNoGroupStartsNoneOver) {
  ScriptedRun run;
  run.until<command::Judge>();
  auto restored = Scheduler::restored(run.scheduler().config(), run.scheduler().snapshot());
  ASSERT_TRUE(restored);
  const std::string before = restored->snapshot();
  event::Resumed forged{.sequence = 0, .lost = {ResponseId(1'000'000)}};
  restored->on(forged, run.now());
  EXPECT_EQ(restored->snapshot(), before);
}

}  // namespace
}  // namespace temper::orchestrator::testing
