// A run with two sources of problems that is killed and resumed draws what it would have drawn.
#include "tests/system/harness.hpp"

#include <signal.h>

#include <algorithm>
#include <map>

namespace temper::test {
namespace {

namespace command = orchestrator::command;
namespace event = orchestrator::event;

using Sources = SystemTest;

const Arguments kTwoSources = {
    kSlow,
    "staleness.bound=0",
    "checkpoint.every=3",
    "task.sources={long: {digits: 2, schedule: {0: 1, 12: 3}}, short: {digits: 1}}"};

/// The draws of all groups that count, by group: a resume voids those after its checkpoint.
std::vector<orchestrator::Draw> draws(const std::vector<orchestrator::Record>& records) {
  std::map<GroupId, orchestrator::Draw> by_group;
  for (const auto& record : records) {
    for (const auto& c : record.commands) {
      const auto* dispatch = std::get_if<command::Dispatch>(&c);
      if (dispatch != nullptr && dispatch->draw)
        by_group[dispatch->group] = *dispatch->draw;
    }
  }
  std::vector<orchestrator::Draw> all;
  for (const auto& [group, draw] : by_group)
    all.push_back(draw);
  return all;
}

TEST_F(Sources, AKilledAndResumedRunDrawsTheSameProblems) {
  run(kTwoSources);
  const Ended whole = current().wait();
  ASSERT_EQ(whole.status, 0) << whole.output;
  const auto expected = draws(records());
  EXPECT_EQ(expected.size(), 24U * 4);
  const auto is_long = [](const orchestrator::Draw& draw) { return draw.source == 0; };
  // A half at first, and three quarters from step 12.
  const auto later = std::count_if(expected.begin() + 48, expected.end(), is_long);
  EXPECT_NEAR(static_cast<double>(later), 36, 1);
  std::filesystem::rename(run_dir(), folder() / "whole");

  run(kTwoSources);
  await_version(8);
  current().signal(SIGKILL);
  current().wait();
  resume();
  const Ended resumed = current().wait();
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_EQ(count_events<event::Resumed>(records()), 1U);
  expect_whole_run(24);
  EXPECT_EQ(draws(records()), expected);
}

TEST_F(Sources, AResumeWithAnotherWeightGoesOnAndWithOtherProblemsIsRefused) {
  run(kTwoSources);
  await_version(4);
  current().signal(SIGKILL);
  current().wait();
  const Ended refused =
      temper({"run", "--resume", run_dir().string(), "--set", "task.sources.short.digits=3"});
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.output.find("task.sources.short.digits: 1 -> 3"), std::string::npos)
      << refused.output;
  resume({"task.sources.short.weight=5"});
  const Ended resumed = current().wait();
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  expect_whole_run(24);
}

}  // namespace
}  // namespace temper::test
