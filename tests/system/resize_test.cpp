// A run whose number of engines changes while it lasts.
#include "tests/system/harness.hpp"

#include <signal.h>

#include <algorithm>

namespace temper::test {
namespace {

namespace event = orchestrator::event;
namespace command = orchestrator::command;
using orchestrator::Record;

class ARunOfAnotherSize : public SystemTest {
 protected:
  /// `temper run --resume` with these settings; stops it at its next version from `until` on.
  void resume_until(std::uint64_t until, const Arguments& sets) {
    resume(sets);
    await_version(until);
    stop();
  }
  void stop() {
    current().signal(SIGINT);
    EXPECT_EQ(current().wait().status, 130);
  }
};

/// Names of the engines that are given work between two records, each once.
std::set<std::string> engines_at_work(const std::vector<Record>& records,
                                      std::size_t from,
                                      std::size_t to) {
  std::set<std::string> names;
  std::vector<orchestrator::ActorSpec> actors;
  for (std::size_t i = 0; i < std::min(to, records.size()); ++i) {
    if (const auto* now = orchestrator::actors_in(records[i].event))
      actors = *now;
    for (const orchestrator::Command& c : records[i].commands) {
      const auto* dispatch = std::get_if<command::Dispatch>(&c);
      if (dispatch != nullptr && i >= from)
        names.insert(actors.at(dispatch->actor.value()).name);
    }
  }
  return names;
}

/// Where each part of a run begins, and its end.
template <class E>
std::vector<std::size_t> parts_of(const std::vector<Record>& records) {
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (std::holds_alternative<E>(records[i].event))
      begins.push_back(i);
  }
  begins.push_back(records.size());
  return begins;
}

TEST_F(ARunOfAnotherSize, IsResumedWithMoreEnginesThenFewerAnotherBoundAndMoreSteps) {
  run({"synthetic.step_time=20ms", "staleness.bound=1"});
  await_version(6);
  stop();
  const Arguments three{"rollout.replicas=3", "rollout.concurrency=6", "staleness.bound=2"};
  resume_until(12, three);
  const Ended ended = resume({"rollout.replicas=1", "steps=30"}).wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("rollout.replicas: 3 -> 1"), std::string::npos) << ended.output;
  expect_whole_run(30);

  const Records all = records();
  const auto parts = parts_of<event::Resumed>(all);
  ASSERT_EQ(parts.size(), 4U);
  using Names = std::set<std::string>;
  EXPECT_EQ(engines_at_work(all, parts[0], parts[1]), (Names{"rollout-0", "rollout-1"}));
  EXPECT_EQ(engines_at_work(all, parts[1], parts[2]),
            (Names{"rollout-0", "rollout-1", "rollout-2"}));
  EXPECT_EQ(engines_at_work(all, parts[2], parts[3]), (Names{"rollout-0"}));
  const auto& last = *orchestrator::actors_in(all[parts[2]].event);
  EXPECT_EQ(last.back().name, "rollout-2") << "who came later is behind the others";
  EXPECT_TRUE(last.back().away);
}

}  // namespace
}  // namespace temper::test
