// Signals that stop a run end it with the documented exit code (docs/reference/exit-codes.md),
// whatever it is doing: each signal in each phase, and at the file operations of a start, a run, a
// resume and an end. The run goes on afterwards, and its log is clean.
#include "core/files.hpp"
#include "orchestrator/record/event_log.hpp"
#include "tests/system/harness.hpp"
#include "tests/system/stop_signals.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <tuple>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;
namespace command = orchestrator::command;
using orchestrator::Record;

template <class C>
bool has_command(const std::vector<Record>& records) {
  return std::ranges::any_of(records, [](const Record& record) {
    return std::ranges::any_of(record.commands,
                               [](const auto& c) { return std::holds_alternative<C>(c); });
  });
}

// --- In each phase

struct Phase {
  const char* name;
  Arguments sets;
  /// Whether the run has come to it.
  std::function<bool(const std::vector<Record>&)> reached;
};

std::vector<Phase> phases() {
  return {
      {"AtItsStart", {}, [](const auto& all) { return !all.empty(); }},
      {"WhileAWorkerHasStarted",
       {},
       [](const auto& all) { return count_events<event::ActorReady>(all) >= 1; }},
      {"WhileItGenerates",
       {kSlow},
       [](const auto& all) { return has_command<command::Dispatch>(all); }},
      {"WhileItTrains", {kSlow}, [](const auto& all) { return has_command<command::Train>(all); }},
      {"WhileItSaves",
       {kSlow, "checkpoint.every=1"},
       [](const auto& all) { return has_command<command::SaveCheckpoint>(all); }},
      {"AfterSomeUpdates", {kSlow}, [](const auto& all) { return last_version(all) >= 3; }}};
}

class ASignal : public SystemTest,
                public testing::WithParamInterface<std::tuple<Phase, StopSignal>> {
 protected:
  const Phase& phase() const { return std::get<0>(GetParam()); }
  const StopSignal& stop() const { return std::get<1>(GetParam()); }

  void expect_to_go_on() {
    const Ended resumed = resume({"synthetic.step_time=1ms"}).wait();
    EXPECT_EQ(resumed.status, 0) << resumed.output;
    expect_clean_log();
    EXPECT_EQ(last_version(records()), 24U);
  }
};
INSTANTIATE_TEST_SUITE_P(Each,
                         ASignal,
                         testing::Combine(testing::ValuesIn(phases()), testing::ValuesIn(kStops)),
                         [](const auto& p) {
                           return fmt::format("{}Sig{}",
                                              std::get<0>(p.param).name,
                                              ::sigabbrev_np(std::get<1>(p.param).signal));
                         });

TEST_P(ASignal, EndsTheRunWithItsExitCode) {
  Arguments sets = phase().sets;
  sets.emplace_back("steps=24");
  run(sets);
  await(phase().reached);
  current().signal(stop().signal);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, stop().status) << ended.output;
  EXPECT_LT(last_version(records()), 24U);
  expect_to_go_on();
}

class ASignalInARollback : public SystemTest, public testing::WithParamInterface<StopSignal> {};
INSTANTIATE_TEST_SUITE_P(Each, ASignalInARollback, testing::ValuesIn(kStops), [](const auto& p) {
  return fmt::format("Sig{}", ::sigabbrev_np(p.param.signal));
});

TEST_P(ASignalInARollback, EndsTheRunWithItsExitCode) {
  run({kSlow, "checkpoint.every=1"});
  await_version(2);
  const pid_t trainer = await_worker("trainer");
  ASSERT_GT(trainer, 0);
  ASSERT_EQ(::kill(trainer, SIGKILL), 0);
  await([](const Records& all) { return has_command<command::Rollback>(all); });
  current().signal(GetParam().signal);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, GetParam().status) << ended.output;
  expect_clean_log();
}

// --- At file operations

class ASignalAtAFileOperation : public SystemTest, public testing::WithParamInterface<StopSignal> {
 protected:
  /// `temper` that gets the signal just before its n-th operation on a file of the run; 0: never.
  Ended disturbed(const Arguments& arguments, long n) {
    const auto environment = [this, n] {
      ::setenv("LD_PRELOAD", TEMPER_KILLED_AT_CALL, 1);
      ::setenv("TEMPER_KILL_BELOW", run_dir().c_str(), 1);
      ::setenv("TEMPER_KILL_AT", std::to_string(n).c_str(), 1);
      ::setenv("TEMPER_KILL_SIGNAL", std::to_string(GetParam().signal).c_str(), 1);
      ::setenv("TEMPER_KILL_COUNT", (folder() / "count").c_str(), 1);
    };
    return Temper(arguments, {folder(), environment, kTemper}).wait();
  }
  Arguments start() const {
    return {"run",
            config().string(),
            "--plain",
            "--set",
            "run_dir=" + run_dir().string(),
            "--set",
            "steps=4"};
  }
  long operations() const {
    return std::strtol(read_file(folder() / "count").value_or("0").c_str(), nullptr, 10);
  }
  bool has_finished() const {
    const auto summary = read_file(run_dir() / "summary.json").value_or("");
    return summary.find("\"ok\": true") != std::string::npos ||
           summary.find("\"ok\":true") != std::string::npos;
  }
  void expect_stopped(const Ended& ended, long n, const char* what) {
    if (ended.status == 0 && has_finished())
      return;  // it came after the last update
    EXPECT_EQ(ended.status, GetParam().status)
        << what << ", operation " << n << ": " << ended.output;
  }
  /// From the first operations on each, then fewer and fewer.
  static long after(long n) { return n < 12 ? n + 1 : n + n / 2; }
};
INSTANTIATE_TEST_SUITE_P(Each,
                         ASignalAtAFileOperation,
                         testing::ValuesIn(kStops),
                         [](const auto& p) {
                           return fmt::format("Sig{}", ::sigabbrev_np(p.param.signal));
                         });

TEST_P(ASignalAtAFileOperation, OfAStartEndsItWithItsExitCode) {
  ASSERT_EQ(disturbed(start(), 0).status, 0);
  const long whole = operations();
  ASSERT_GT(whole, 20);
  for (long n = 1; n <= whole; n = after(n)) {
    fs::remove_all(run_dir());
    expect_stopped(disturbed(start(), n), n, "start");
    const Ended again = disturbed({"run",
                                   "--continue",
                                   config().string(),
                                   "--plain",
                                   "--set",
                                   "run_dir=" + run_dir().string(),
                                   "--set",
                                   "steps=4"},
                                  0);
    ASSERT_EQ(again.status, 0) << "after operation " << n << ": " << again.output;
    expect_clean_log();
  }
}

class AStartThatWasStopped : public SystemTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Each, AStartThatWasStopped, testing::Bool(), [](const auto& p) {
  return p.param ? "Continued" : "Repeated";
});

TEST_P(AStartThatWasStopped, BeforeItsFirstRecordIsStartedAgain) {
  fs::create_directories(run_dir());
  ASSERT_TRUE(orchestrator::EventLog::create(run_dir() / "events.log", {}));
  Arguments words{"run", config().string(), "--plain"};
  if (GetParam())
    words.emplace_back("--continue");
  for (const std::string& set : {"run_dir=" + run_dir().string(), std::string("steps=4")})
    words.insert(words.end(), {"--set", set});
  const Ended ended = Temper(words, {folder(), {}, kTemper}).wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_clean_log();
}

TEST_P(AStartThatWasStopped, IsNoneIfItHasCheckpoints) {
  ASSERT_EQ(run({"steps=4"}).wait().status, 0);
  fs::remove(run_dir() / "events.log");
  ASSERT_TRUE(orchestrator::EventLog::create(run_dir() / "events.log", {}));
  Arguments words{"run", config().string(), "--plain", "--set", "run_dir=" + run_dir().string()};
  if (GetParam())
    words.emplace_back("--continue");
  EXPECT_EQ(Temper(words, {folder(), {}, kTemper}).wait().status, 2);
  EXPECT_TRUE(fs::exists(run_dir() / "checkpoints/step-000004"));
}

TEST_P(ASignalAtAFileOperation, OfAResumeEndsItWithItsExitCode) {
  ASSERT_EQ(disturbed(start(), 0).status, 0);
  const fs::path first = run_dir().string() + ".first";
  fs::copy(run_dir(), first, fs::copy_options::recursive);
  const Arguments resumed{"run", "--resume", run_dir().string(), "--plain", "--set", "steps=6"};
  ASSERT_EQ(disturbed(resumed, 0).status, 0);
  const long whole = operations();
  for (long n = 1; n <= whole; n = after(n)) {
    fs::remove_all(run_dir());
    fs::copy(first, run_dir(), fs::copy_options::recursive);
    expect_stopped(disturbed(resumed, n), n, "resume");
    const Ended again = disturbed(resumed, 0);
    ASSERT_EQ(again.status, 0) << "after operation " << n << ": " << again.output;
    expect_clean_log();
  }
}

}  // namespace
}  // namespace temper::test
