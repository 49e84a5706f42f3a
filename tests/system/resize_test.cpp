// A run whose number of engines changes while it lasts.
#include "core/files.hpp"
#include "tests/system/harness.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
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

/// How often the end of a worker is told of.
std::int64_t ends_since(const std::vector<Record>& records, std::size_t from) {
  const auto begin = records.begin() + static_cast<std::ptrdiff_t>(from);
  return std::count_if(begin, records.end(), [](const Record& r) {
    return std::holds_alternative<event::ActorDown>(r.event);
  });
}

class AScaledRun : public ARunOfAnotherSize {
 protected:
  void scale(const std::string& number, int status = 0) {
    const Ended said = temper({"scale", run_dir().string(), number});
    EXPECT_EQ(said.status, status) << said.output;
    said_ = said.output;
  }
  void await_file(const std::filesystem::path& file) {
    await([&](const Records&) { return std::filesystem::exists(file); });
  }
  /// Waits until the actor has been given work, or has ended, after the last change.
  template <class Holds>
  void await_since_change(Holds&& holds) {
    await([&](const Records& all) {
      const auto parts = parts_of<event::Scaled>(all);
      return holds(all, parts[parts.size() - 2]);
    });
  }
  std::string said_;
};

TEST_F(AScaledRun, IsGivenAnEngineAndHasTwoTakenWhileItGoesOn) {
  run({"synthetic.step_time=20ms", "steps=400"});
  await_version(3);
  scale("rollout=3");
  EXPECT_NE(said_.find("rollout.replicas: 2 -> 3"), std::string::npos) << said_;
  await_since_change([](const Records& all, std::size_t from) {
    return engines_at_work(all, from, all.size()).contains("rollout-2");
  });
  EXPECT_TRUE(workers().contains("rollout-2"));
  const auto version = last_version(records());

  scale("rollout=1");
  await_since_change(
      [](const Records& all, std::size_t from) { return ends_since(all, from) >= 2; });
  for (const char* gone : {"rollout-1", "rollout-2"})
    EXPECT_FALSE(workers().contains(gone)) << gone;
  await_version(version + 3);
  scale("rollout=0", 2);
  scale("trainer=2", 2);

  stop();
  expect_clean_log();
  const Records all = records();
  const auto parts = parts_of<event::Scaled>(all);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(engines_at_work(all, parts[2], all.size()), (std::set<std::string>{"rollout-0"}));
  EXPECT_EQ(ends_since(all, parts[2]), 2) << "each end is told of once";
  for (const Record& r : all) {
    if (const auto* down = std::get_if<event::ActorDown>(&r.event)) {
      EXPECT_FALSE(down->lied) << down->reason;
    }
  }
  const Ended ended = resume({fmt::format("steps={}", last_version(all) + 2)}).wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.output.find("rollout.replicas"), std::string::npos)
      << "it goes on with what it was scaled to: " << ended.output;
  expect_clean_log();
  scale("rollout=2", 2);
}

TEST_F(AScaledRun, ThatEndsBeforeItAnswersIsNotWaitedFor) {
  run({"synthetic.step_time=20ms", "steps=400"});
  await_version(2);
  current().signal(SIGSTOP);  // it cannot answer any more
  Temper asking({"scale", run_dir().string(), "rollout=3"}, {folder(), {}, kTemper});
  await_file(run_dir() / "scale.request");
  current().signal(SIGKILL);
  const Ended said = asking.wait();
  EXPECT_EQ(said.status, 1) << said.output;
  EXPECT_NE(said.output.find("ended before it answered"), std::string::npos) << said.output;
  EXPECT_FALSE(std::filesystem::exists(run_dir() / "scale.request"));
}

TEST_F(AScaledRun, IsResumedWithTheWantedNumbersOnceItHasStopped) {
  ASSERT_EQ(run({"steps=2"}).wait().status, 0);
  for (const auto& [number, key] : {std::pair("reward=2", "reward.replicas=2"),
                                    std::pair("reference=3", "reference.replicas=3"),
                                    std::pair("rollout=4", "rollout.replicas=4")}) {
    scale(number, 2);
    const std::string expected = fmt::format(
        "is not running; to resume it with these numbers: temper run --resume {} --set "
        "{}\n",
        run_dir().string(),
        key);
    EXPECT_NE(said_.find(expected), std::string::npos) << said_;
  }
  scale("rollout=-1", 2);
  EXPECT_NE(said_.find("rollout.replicas: must be between 1 and"), std::string::npos) << said_;
}

TEST_F(AScaledRun, IsNotScaledByARequestToAnEarlierOrchestrator) {
  ASSERT_EQ(run({"steps=4"}).wait().status, 0);
  ASSERT_TRUE(write_file_atomically(run_dir() / "scale.request", "id: old\nrollout: 3\n"));
  const Ended ended = resume({"steps=8"}).wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(8);
  EXPECT_EQ(count_events<event::Scaled>(records()), 0U);
  EXPECT_FALSE(fs::exists(run_dir() / "scale.request"));
  const std::string answer = read_file(run_dir() / "scale.answer").value_or("");
  EXPECT_NE(answer.find("outcome: restarted"), std::string::npos) << answer;
  EXPECT_NE(answer.find("id: old"), std::string::npos) << answer;
  EXPECT_NE(read_file(run_dir() / "config.yaml").value().find("replicas: 2"), std::string::npos);
}

TEST_F(AScaledRun, ReadsARequestOnlyOnceItHasAFleet) {
  run({"steps=4"});
  ASSERT_EQ(current().wait().status, 0);
  resume({"steps=2000", kSlow});
  for (const char* number : {"rollout=3", "rollout=1", "reward=2", "reward=1"}) {
    Ended said;
    do {  // from the moment on that it holds the folder, long before its workers are there
      said = temper({"scale", run_dir().string(), number});
    } while (said.output.find("is not running") != std::string::npos && !current().has_ended());
    EXPECT_TRUE(said.status == 0 || said.output.find("restarted") != std::string::npos)
        << number << ": " << said.output;
    ASSERT_FALSE(current().has_ended()) << number << ": " << current().wait().output;
  }
  await_version(8);
  stop();
  expect_clean_log();
}

/// What a user with access to the folder may put in place of a request.
TEST_F(AScaledRun, GoesOnWhateverIsInPlaceOfARequest) {
  run({kSlow, "steps=400"});
  await_version(1);
  const fs::path request = run_dir() / "scale.request";
  const std::vector<std::function<void()>> neighbors{
      [&] { ASSERT_EQ(::mkfifo(request.c_str(), 0600), 0); },
      [&] { fs::create_directory(request); },
      [&] { fs::create_symlink("/dev/zero", request); },
      [&] { ASSERT_TRUE(write_file_atomically(request, "id: x\nrollout: 4097\n")); },
      [&] { ASSERT_TRUE(write_file_atomically(request, "id: x\nrollout: 0\n")); },
      [&] { ASSERT_TRUE(write_file_atomically(request, std::string(1 << 20, 'x'))); },
      [&] { ASSERT_TRUE(write_file_atomically(request, std::string_view("\0\xff", 2))); }};
  for (std::size_t i = 0; i < neighbors.size(); ++i) {
    const fs::path answered = run_dir() / "scale.answer";
    fs::remove(answered);
    neighbors[i]();
    await([&](const Records&) { return fs::exists(answered); });
    EXPECT_FALSE(fs::exists(fs::symlink_status(request))) << i;
    const std::string answer = read_file(answered).value_or("");
    EXPECT_NE(answer.find("outcome: refused"), std::string::npos) << i << ": " << answer;
  }
  EXPECT_FALSE(current().has_ended());
  stop();
  expect_clean_log();
  EXPECT_EQ(count_events<event::Scaled>(records()), 0U);
}

TEST_F(AScaledRun, RefusesANumberBeyond32Bits) {
  scale("rollout=4294967299", 2);
  EXPECT_NE(said_.find("expected ROLE=N"), std::string::npos) << said_;
}

TEST_F(AScaledRun, OutlivesItsTrainer) {
  run({"synthetic.step_time=20ms", "steps=1000", "checkpoint.every=1"});
  await_version(2);
  scale("rollout=3");
  scale("rollout=1");
  await_version(6);
  const pid_t trainer = await_worker("trainer");
  ASSERT_GT(trainer, 0) << "0 would be everyone of this process group";
  ASSERT_EQ(::kill(trainer, SIGKILL), 0);
  await([](const Records& all) { return count_events<event::Resumed>(all) == 1; });
  await_version(last_version(records()) + 5);
  stop();
  expect_clean_log();
  const Ended ended = resume({fmt::format("steps={}", last_version(records()) + 2)}).wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_clean_log();
}

}  // namespace
}  // namespace temper::test
