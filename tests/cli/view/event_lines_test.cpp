// Events of a run as lines of text.
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

}  // namespace
}  // namespace temper::cli
