// Workers that nobody of the run started: they come when they like, prove themselves by a key, go
// on under the next orchestrator, and are replaced by whoever waits.
#include "core/files.hpp"
#include "orchestrator/run/processes/key_ring.hpp"
#include "tests/system/harness.hpp"

#include <fmt/format.h>
#include <signal.h>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;
using orchestrator::KeyRing;

const Arguments kAttach{
    "transport.kind=tcp", "rollout.launch=attach", "transport.heartbeat_timeout=1s"};

class Attached : public SystemTest {
 protected:
  /// A run whose two rollout workers attach.
  Temper& begin(const Arguments& more = {}) {
    Arguments sets = kAttach;
    sets.insert(sets.end(), more.begin(), more.end());
    return run(sets);
  }

  fs::path endpoint() const { return run_dir() / "endpoint"; }
  fs::path key(const std::string& name = "worker") const {
    return run_dir() / "keys" / (name + ".key");
  }

  /// Before the run, so that workers may come before it.
  void make_keys(const Arguments& names = {"worker"}) {
    Arguments words{"keys", "make", run_dir().string()};
    words.insert(words.end(), names.begin(), names.end());
    const Ended made = temper(words);
    ASSERT_EQ(made.status, 0) << made.output;
  }

  Temper& worker(const Arguments& more = {"--role", "rollout"}, const fs::path& with = {}) {
    Arguments words{"worker",
                    "--connect",
                    endpoint().string(),
                    "--key",
                    (with.empty() ? key() : with).string(),
                    "--patience",
                    "30"};
    words.insert(words.end(), more.begin(), more.end());
    workers_.push_back(std::make_unique<Temper>(words, Temper::Options{folder(), {}, kTemper}));
    return *workers_.back();
  }
  Temper& worker_number(std::size_t i) { return *workers_[i]; }
  /// Waits for the end of all workers, which must be in order, except one that was killed.
  void expect_workers_end(const Temper* killed = nullptr) {
    for (const auto& worker : workers_) {
      const Ended ended = worker->wait();
      EXPECT_TRUE(ended.status == 0 || worker.get() == killed) << ended.output;
    }
  }
  std::string refusal(Temper& refused) {
    const Ended ended = refused.wait();
    EXPECT_EQ(ended.status, 1) << ended.output;
    return ended.output;
  }
  std::string orchestrator_log() const {
    return read_file(run_dir() / "logs" / "orchestrator.log").value_or("");
  }
  static constexpr const char* kFetches = "fetching weights from the trainer";
  void expect_no_weights_through_the_orchestrator() const {
    const std::string log = orchestrator_log();
    EXPECT_EQ(log.find(kFetches), std::string::npos) << log;
    EXPECT_EQ(log.find("asks for weights"), std::string::npos) << log;
  }

 private:
  std::vector<std::unique_ptr<Temper>> workers_;
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

TEST_F(Attached, DoTheRunsWorkAndEndWithIt) {
  make_keys();
  worker();  // before there is a run
  begin({"synthetic.step_time=20ms", "transport.heartbeat=20ms"});
  worker({"--slot", "rollout-1"});
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("waiting for 2 workers (rollout-0, rollout-1)"), std::string::npos)
      << ended.output;
  EXPECT_EQ(worker_number(0).wait().status, 0);
  EXPECT_EQ(worker_number(1).wait().status, 0);
  expect_whole_run(24);
  EXPECT_EQ(count_events<event::ActorDown>(records()), 0U);
  EXPECT_EQ(count_events<event::WorkerAttached>(records()), 2U);
  EXPECT_GE(count_events<event::ClockRead>(records()), 2U) << "one of each worker's clock at least";
  Temper& late = worker();
  EXPECT_EQ(late.wait().status, 0) << "the run has ended, and says so";
}

TEST_F(Attached, AreReplacedByWhoeverWaits) {
  make_keys();
  begin({"synthetic.step_time=20ms"});
  Temper& killed = worker({"--slot", "rollout-0"});
  worker({"--slot", "rollout-1"});
  await_version(2);
  worker();  // a spare: every place is taken
  await_version(4);
  killed.signal(SIGKILL);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_EQ(count_events<event::ActorDown>(records()), 1U);
  EXPECT_EQ(worker_number(2).wait().status, 0);
}

TEST_F(Attached, AreGivenAPlaceThatIsOpenedAndSentHomeWhereItIsTakenAway) {
  make_keys();
  begin({"synthetic.step_time=20ms", "steps=400"});
  worker({"--slot", "rollout-0"});
  worker({"--slot", "rollout-1"});
  await_version(2);
  Temper& spare = worker();  // every place is taken
  const auto scale = [this](const char* number) {
    const Ended said = temper({"scale", run_dir().string(), number});
    EXPECT_EQ(said.status, 0) << said.output;
  };
  scale("rollout=3");
  await([](const Records& all) { return count_events<event::WorkerAttached>(all) == 3; });
  const auto version = last_version(records());
  await_version(version + 2);
  scale("rollout=2");
  EXPECT_EQ(spare.wait().status, 0) << "it has done its part";
  await([](const Records& all) { return count_events<event::ActorDown>(all) == 1; });
  current().signal(SIGINT);
  EXPECT_EQ(current().wait().status, 130);
  expect_clean_log();
}

TEST_F(Attached, GoOnUnderTheNextOrchestratorWithWhatTheyHaveLoaded) {
  make_keys();
  begin({"synthetic.step_time=20ms"});
  worker();
  worker();
  constexpr std::size_t kHeads = 3;
  for (std::size_t i = 1; i <= kHeads; ++i) {
    await_version(6 * i);
    current().signal(SIGKILL);
    current().wait();
    resume();
  }
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  for (std::size_t i = 0; i < 2; ++i) {
    const Ended one = worker_number(i).wait();
    EXPECT_EQ(one.status, 0) << one.output;
    EXPECT_EQ(count(one.output, "role built"), 1U) << one.output;
    EXPECT_EQ(count(one.output, "resumed with the loaded state"), kHeads) << one.output;
  }
  expect_whole_run(24);
}

TEST_F(Attached, WithAKeyThatWasRevokedAreRefusedByItsNameAndChangeNothing) {
  make_keys({"good", "bad"});
  ASSERT_EQ(temper({"keys", "revoke", run_dir().string(), "good"}).status, 0);
  EXPECT_FALSE(fs::exists(key("good")));
  begin({"synthetic.step_time=100ms"});  // not done when the orchestrator looks at its keys
  worker({"--slot", "rollout-0"}, key("bad"));
  worker({"--slot", "rollout-1"}, key("bad"));
  await_version(3);
  // Taken back while its workers are at work: they are let go, and do not come back.
  const fs::path copy = folder() / "bad.key";
  fs::copy_file(key("bad"), copy);
  ASSERT_EQ(temper({"keys", "make", run_dir().string(), "next"}).status, 0);
  ASSERT_EQ(temper({"keys", "revoke", run_dir().string(), "bad"}).status, 0);
  EXPECT_NE(refusal(worker_number(0)).find("refuses the key bad"), std::string::npos);
  EXPECT_NE(refusal(worker_number(1)).find("refuses the key bad"), std::string::npos);
  worker({"--role", "rollout"}, key("next"));
  worker({"--role", "rollout"}, key("next"));
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(orchestrator_log().find("the key was revoked"), std::string::npos);
  EXPECT_NE(orchestrator_log().find("@bad"), std::string::npos);
  expect_whole_run(24);
}

TEST_F(Attached, WithAKeyOfAnotherRunAreRefusedByItsName) {
  make_keys();
  auto other = KeyRing::open(folder() / "other", KeyRing::Make::Missing).value();
  const fs::path foreign = other.make("theirs", "any").value();
  begin();
  // By the file, and by the address alone.
  EXPECT_NE(refusal(worker({"--role", "rollout"}, foreign))
                .find("the key theirs belongs to run " + other.head().run),
            std::string::npos);
  worker();
  worker();
  EXPECT_EQ(current().wait().status, 0);
  expect_whole_run(24);
}

TEST_F(Attached, AKeyForOneRoleIsNotForAnother) {
  make_keys();
  const Ended made = temper({"keys", "make", run_dir().string(), "scorer", "--for", "reward"});
  ASSERT_EQ(made.status, 0) << made.output;
  begin({"reward.launch=attach"});
  EXPECT_NE(refusal(worker({"--role", "rollout"}, key("scorer")))
                .find("the key scorer is for reward, not for rollout"),
            std::string::npos);
  EXPECT_NE(refusal(worker({"--slot", "trainer"})).find("no worker is waited for as \"trainer\""),
            std::string::npos);
  worker();
  worker();
  worker({"--rank", "2"}, key("scorer"));  // the slots of others come first
  EXPECT_EQ(current().wait().status, 0);
  expect_whole_run(24);
}

TEST_F(Attached, ARunForWhichNobodyComesEndsAndSaysForWhomItWaited) {
  const Ended ended = begin({"deadlines.attach=300ms"}).wait();
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("no worker attached as rollout-0"), std::string::npos)
      << ended.output;
}

TEST_F(Attached, AnOrchestratorThatHasBeenSucceededEnds) {
  make_keys();
  begin({"synthetic.step_time=20ms", "steps=100000"});
  worker();
  worker();
  await_version(2);
  // As if another host, whose lock is not seen here, had begun to go on with the run.
  auto ring = KeyRing::open(run_dir(), KeyRing::Make::No).value();
  ASSERT_EQ(ring.begin_incarnation().value(), 2U);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("orchestrator 2 of this run has begun; this one, number 1, ends"),
            std::string::npos)
      << ended.output;
}

/// Settings of a run whose trainer attaches. Its images have eight chunks.
Arguments with_attached_trainer(const Arguments& more = {}) {
  Arguments sets{"trainer.launch=attach", "synthetic.weights=8MiB", kSlow};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST_F(Attached, EnginesGetTheWeightsOfATrainerThatAttachedFromItsWorker) {
  make_keys();
  begin(with_attached_trainer());
  worker({"--role", "trainer"});
  worker();
  worker();
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_workers_end();
  expect_no_weights_through_the_orchestrator();
  expect_whole_run(24);
}

TEST_F(Attached, EnginesOfTheRunsOwnMachineGetTheWeightsOfATrainerThatAttached) {
  make_keys();
  Arguments sets = with_attached_trainer({"transport.kind=tcp", "staleness.bound=0"});
  run(sets);
  worker({"--role", "trainer"});
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_workers_end();
  EXPECT_GE(count(orchestrator_log(), kFetches), 24U) << "one for each version";
  expect_whole_run(24);
}

TEST_F(Attached, AnotherTrainerPublishesTheCheckpointAfterAKill) {
  make_keys();
  begin(with_attached_trainer());
  Temper& killed = worker({"--role", "trainer"});
  worker();
  worker();
  await_version(2);
  worker({"--role", "trainer"});  // a spare
  await_version(7);
  killed.signal(SIGKILL);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_workers_end(&killed);
  expect_no_weights_through_the_orchestrator();
  EXPECT_EQ(count_events<event::Resumed>(records()), 1U);
  expect_whole_run(24);
}

TEST_F(Attached, ATrainerThatAttachedServesItsWeightsUnderTheNextOrchestrator) {
  make_keys();
  begin(with_attached_trainer());
  worker({"--role", "trainer"});
  worker();
  worker();
  await_version(6);
  current().signal(SIGKILL);
  current().wait();
  resume();
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_workers_end();
  expect_no_weights_through_the_orchestrator();
  expect_whole_run(24);
}

}  // namespace
}  // namespace temper::test
