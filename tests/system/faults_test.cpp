// Planned failures, played on the processes of a run.
#include "core/files.hpp"
#include "tests/system/harness.hpp"

namespace temper::test {
namespace {

namespace event = orchestrator::event;

class PlannedFaults : public SystemTest {
 protected:
  /// `temper run --faults` of updates that take a tenth of a second at least.
  Ended play(const std::string& plan, Arguments sets = {}) {
    EXPECT_TRUE(write_file_atomically(folder() / "plan.csv", plan));
    sets.insert(sets.end(),
                {"synthetic.step_time=100ms",
                 "simulation.faults.trace=" + (folder() / "plan.csv").string()});
    run(sets);
    return current().wait();
  }
  std::vector<std::string> reasons() const {
    std::vector<std::string> all;
    for (const auto& record : records()) {
      if (const auto* down = std::get_if<event::ActorDown>(&record.event))
        all.push_back(down->reason);
    }
    return all;
  }
};

TEST_F(PlannedFaults, KillAtTheirTimesAndTheRunIsWhole) {
  const Ended ended = play("0.8,card,0\n1.6,card,1\n");  // engines, then the trainer
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_GE(count_events<event::ActorDown>(records()), 2U);
  EXPECT_GE(count_events<event::Resumed>(records()), 1U);
}

TEST_F(PlannedFaults, WhoIsCutOffOrStandsForAWhileGoesOn) {
  const Ended ended =
      play("0.8,stop,0,0.3\n1.3,link,0\n1.4,slow,1,0.4,3\n",
           {"simulation.faults.link_repair=300ms", "transport.heartbeat_timeout=20s"});
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_EQ(reasons(), std::vector<std::string>());
}

TEST_F(PlannedFaults, WhoIsCutOffForTooLongIsReplacedOnceItsLinkIsBack) {
  const Ended ended = play(
      "1.2,link,0\n",
      {"simulation.faults.link_repair=1500ms", "transport.heartbeat_timeout=500ms", "steps=48"});
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(48);
  ASSERT_FALSE(reasons().empty());
  EXPECT_EQ(reasons().front(), "silent for 500ms");
}

TEST_F(PlannedFaults, APlanThatIsNoneOfThisRunIsRefusedBeforeItBegins) {
  const Ended ended = play("1,card,7\n");
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("plan.csv, line 1"), std::string::npos) << ended.output;
}

TEST_F(PlannedFaults, AreNotPlayedOnWorkersThatOthersStart) {
  const Ended ended = play("1,card,0\n", {"reward.launch=attach", "transport.kind=tcp"});
  EXPECT_EQ(ended.status, 2) << ended.output;
  EXPECT_NE(ended.output.find("reward-0 is started by others"), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace temper::test
