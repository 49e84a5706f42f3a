// Events of a run as lines of text, and the remaining time.
#include "cli/view/render.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <gtest/gtest.h>

namespace temper::cli {

using namespace orchestrator;
namespace {

using namespace std::chrono_literals;

TEST(View, EventsOfNoteHaveALine) {
  SchedulerConfig config;
  config.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 1}};
  const Reason killed = reason_with(ReasonKind::WorkerLost, "killed by signal 9");
  Record r{1, Time(65s), event::ActorDown{ActorId(0), "killed by signal 9"}, {}};
  r.commands = {command::Launch{ActorId(0), killed}};
  EXPECT_EQ(event_lines(r, config),
            std::vector<std::string>{"    1:05 restarting rollout-0: killed by signal 9"});
  r.commands = {command::Discard{ActorId(0), killed, Time(69s)}};
  EXPECT_EQ(event_lines(r, config),
            std::vector<std::string>{"    1:05 restarting rollout-0 in 4s: killed by signal 9"});
  EXPECT_TRUE(event_lines({2, Time(66s), event::DeadlineReached{}, {}}, config).empty());
}

TEST(View, TimeLeftFollowsTheRecentPace) {
  std::vector<Update> updates(21);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    updates[i].version = PolicyVersion(i + 1);
    // Slow at first, then two seconds each.
    updates[i].time = Time(i < 10 ? 100s * static_cast<int>(i) : 900s + 2s * static_cast<int>(i));
  }
  const Time now = updates.back().time + 1s;
  EXPECT_EQ(time_left(updates, 31, now), Duration(19s));  // 10 * 2 s, one of them begun
  EXPECT_EQ(time_left({}, 31, now), std::nullopt);
}

}  // namespace
}  // namespace temper::cli
