// Workers that lie: what they say has no effect, they are replaced and counted, and the log of the
// run is as clean as any other. A verifier that never judges ends the run.
#include "core/files.hpp"
#include "tests/system/harness.hpp"

#include <algorithm>
#include <cstdlib>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;

struct Lie {
  const char* name;
  const char* actor;  ///< Who tells it.
  const char* said;   ///< Of the reason of its restart.
};

class Liar : public SystemTest {
 protected:
  /// A run whose workers tell this lie, once.
  Ended run_with(const std::string& lie, const Arguments& sets = {}) {
    run_program(TEMPER_LYING_PROGRAM);
    return run(sets,
               [lie, told = (folder() / "told").string()] {
                 ::setenv("TEMPER_TEST_LIE", lie.c_str(), 1);
                 ::setenv("TEMPER_TEST_LIE_TOLD", told.c_str(), 1);
               })
        .wait();
  }
  std::string summary() const { return read_file(run_dir() / "summary.json").value(); }
};

class TellingOneLie : public Liar, public testing::WithParamInterface<Lie> {};

TEST_P(TellingOneLie, IsReplacedAndTheRunIsWhole) {
  const Ended ended = run_with(GetParam().name);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(fs::exists(folder() / "told"));
  expect_whole_run(24);
  std::size_t lies = 0;
  for (const auto& record : records()) {
    const auto* down = std::get_if<event::ActorDown>(&record.event);
    if (down == nullptr || !down->lied)
      continue;
    ++lies;
    EXPECT_NE(down->reason.find(GetParam().said), std::string::npos) << down->reason;
  }
  EXPECT_EQ(lies, 1U);
  EXPECT_NE(summary().find("\"lies\": 1"), std::string::npos) << summary();
  EXPECT_NE(ended.output.find(GetParam().actor), std::string::npos) << ended.output;
}

INSTANTIATE_TEST_SUITE_P(
    Workers,
    TellingOneLie,
    testing::Values(Lie{"saved", "rollout-", "trainer.saved: not for an actor of role rollout"},
                    Lie{"saved twice",
                        "trainer",
                        "trainer.saved: a checkpoint of version 5 was saved without a request"},
                    Lie{"committed",
                        "rollout-",
                        "weights.committed: version 1099511627776 was committed without a request"},
                    Lie{"lease", "rollout-", "lease 1000000 is not one of its own"},
                    Lie{"spans", "", "actor.activity: a span from"},
                    Lie{"judged", "reward-0", "reward.judged: lease"}),
    [](const auto& named) {
      std::string name = named.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

/// A violation in one response: that response fails, and its sender continues.
TEST_F(Liar, AboutTheSegmentsOfAResponseLosesThatResponseAlone) {
  const Ended ended = run_with("segments");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(fs::exists(folder() / "told"));
  expect_whole_run(24);
  std::size_t failures = 0;
  for (const auto& record : records()) {
    EXPECT_FALSE(std::holds_alternative<event::ActorDown>(record.event));
    const auto* generated = std::get_if<event::Generated>(&record.event);
    if (generated == nullptr || generated->failure.empty())
      continue;
    ++failures;
    EXPECT_TRUE(generated->failure.starts_with("rollout-")) << generated->failure;
    EXPECT_NE(generated->failure.find("its segments 17"), std::string::npos);
    EXPECT_EQ(std::ranges::count(
                  generated->items, actors::FinishReason::Failed, &event::Generated::Item::finish),
              1);
  }
  EXPECT_EQ(failures, 1U);
  EXPECT_NE(summary().find("\"lies\": 0"), std::string::npos) << summary();
}

TEST_F(Liar, ThatJudgesNothingEndsTheRunWithItsLastWords) {
  const Ended ended = run_with("failing", {"algorithm.failure_limit=2"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("17 groups failed since the last step"), std::string::npos)
      << ended.output;
  EXPECT_NE(ended.output.find("nothing can be judged today"), std::string::npos) << ended.output;
  EXPECT_NE(summary().find("nothing can be judged today"), std::string::npos) << summary();
  expect_clean_log();
}

using SlowStart = Liar;

/// A start that takes longer than deadlines.start.
TEST_F(SlowStart, OfAWorkerThatLoadsIsWaitedFor) {
  const Ended ended = run_with("loading", {"deadlines.start=2s"});
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(fs::exists(folder() / "told"));
  expect_whole_run(24);
  std::size_t reports = 0;
  for (const auto& record : records()) {
    EXPECT_FALSE(std::holds_alternative<event::ActorDown>(record.event));
    reports += std::holds_alternative<event::ActorLoading>(record.event) ? 1 : 0;
  }
  EXPECT_GT(reports, 0U);
}

}  // namespace
}  // namespace temper::test
