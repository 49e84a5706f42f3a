// Gradients that are computed beside generation, by processes that die, stop and go on.
#include "tests/system/harness.hpp"

#include <signal.h>

namespace temper::test {
namespace {

namespace command = orchestrator::command;
namespace event = orchestrator::event;
using orchestrator::Record;

/// Twice as many responses as the engines have slots for: half of a batch is there before the rest.
const Arguments kPreparing{"stragglers.prepare=true",
                           "algorithm.minibatches=1",
                           "algorithm.groups_per_update=8",
                           "staleness.bound=0"};

class Preparing : public SystemTest {
 protected:
  Temper& prepare(const Arguments& more = {}) {
    Arguments sets = kPreparing;
    sets.insert(sets.end(), more.begin(), more.end());
    return run(sets);
  }
  /// Gradients of groups of an update that has not begun, after a few updates.
  static bool keeps_gradients(const std::vector<Record>& records) {
    bool keeps = false;
    for (const Record& record : records) {
      keeps = keeps || std::holds_alternative<event::Prepared>(record.event);
      for (const auto& c : record.commands)
        keeps = keeps && !std::holds_alternative<command::Train>(c);
    }
    return keeps && last_version(records) >= 3;
  }
  /// Of the batches of kPreparing.
  void expect_whole_run(std::uint64_t steps) { SystemTest::expect_whole_run(steps, 8); }
  void expect_prepared() const { EXPECT_GT(count_events<event::Prepared>(records()), 0U); }
};

TEST_F(Preparing, AtBoundZeroLeavesACleanLogThatReplays) {
  ASSERT_EQ(prepare().wait().status, 0);
  expect_whole_run(24);
  EXPECT_GE(count_events<event::Prepared>(records()), 24U);
}

TEST_F(Preparing, OnLentCardsLeavesACleanLogThatReplays) {
  ASSERT_EQ(prepare({"placement.mode=hybrid", "staleness.bound=1"}).wait().status, 0);
  expect_whole_run(24);
}

TEST_F(Preparing, GoesOnAfterItsTrainerDiedWithGradients) {
  prepare({"synthetic.step_time=20ms"});
  await(keeps_gradients);
  ASSERT_EQ(::kill(await_worker("trainer"), SIGKILL), 0);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

TEST_F(Preparing, GoesOnAfterAnEngineDiedThatHadTheRestOfTheBatch) {
  prepare({"synthetic.step_time=20ms"});
  await(keeps_gradients);
  ASSERT_EQ(::kill(await_worker("rollout-0"), SIGKILL), 0);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  expect_prepared();
}

TEST_F(Preparing, ThatWasStoppedWithGradientsIsResumedWithoutThem) {
  prepare({"synthetic.step_time=20ms"});
  await(keeps_gradients);
  current().signal(SIGINT);
  EXPECT_EQ(current().wait().status, 130);
  expect_clean_log();
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  expect_whole_run(24);
}

TEST_F(Preparing, WhoseHeadDiedWithGradientsIsResumedWithoutThem) {
  prepare({"synthetic.step_time=20ms"});
  await(keeps_gradients);
  current().signal(SIGKILL);
  current().wait();
  await_no_processes();
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  expect_whole_run(24);
}

/// Rewards of synthetic responses are alike more often than not.
TEST_F(Preparing, PromisesNoGroupThatIsFiltered) {
  ASSERT_EQ(prepare({"algorithm.name=dapo", "steps=6"}).wait().status, 0);
  expect_whole_run(6);
  expect_prepared();
  std::size_t filtered = 0;
  for (const Record& record : records()) {
    for (const auto& c : record.commands) {
      const auto* gone = std::get_if<command::Release>(&c);
      filtered += gone != nullptr && gone->outcome == orchestrator::Outcome::Filtered;
    }
  }
  EXPECT_GT(filtered, 0U);
}

}  // namespace
}  // namespace temper::test
