// The actions of a run when alarms are raised.
#include "cli/watch/run_watch.hpp"

#include "core/json_read.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>

namespace temper::cli {
namespace {

using namespace std::chrono_literals;
using orchestrator::AlarmKind;

volatile std::sig_atomic_t stops = 0;

TEST(RunWatch, HoweverManyAlarmsAskForAStopTheRunIsAskedOnce) {
  const auto before = std::signal(SIGTERM, [](int) { stops = stops + 1; });
  const test::TemporaryFolder folder;
  orchestrator::PipelineConfig config;
  config.alarms.disk_free = Bytes(INT64_MAX);  // too little is free at the first look
  config.alarms.stop_on = {AlarmKind::DiskAlmostFull, AlarmKind::NotFinite};
  auto recorder = orchestrator::RunRecorder::create(folder.path()).value();
  const ManualClock wall;
  RunWatch watch(folder.path(), config, *recorder, wall, Log::discard());
  std::vector<AlarmKind> shown;
  watch.set_on_alarm([&](const orchestrator::Alarm& alarm) { shown.push_back(alarm.kind); });
  watch.begin();
  orchestrator::SchedulerConfig scheduler;
  scheduler.actors = {{"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  recorder->feed({0, Time(), orchestrator::event::Started{scheduler}, {}});
  watch.refresh({orchestrator::RunState()});
  EXPECT_EQ(stops, 1);
  const auto update = [&](std::uint64_t n, double loss) {
    actors::UpdateMetrics metrics;
    metrics.loss = loss;
    const Time at(std::chrono::seconds(10 * n));
    recorder->feed({2 * n - 1,
                    at,
                    orchestrator::event::DeadlineReached{},
                    {orchestrator::command::Train{ActorId(0), LeaseId(n), {}, {}}}});
    recorder->feed(
        {2 * n,
         at,
         orchestrator::event::Trained{ActorId(0), LeaseId(n), PolicyVersion(n), {}, metrics},
         {}});
  };
  update(1, std::nan(""));
  update(2, 1);
  EXPECT_EQ(stops, 1);
  EXPECT_EQ(shown, (std::vector{AlarmKind::DiskAlmostFull, AlarmKind::NotFinite}));
  watch.close(0);
  EXPECT_EQ(from_json<Live>(*read_file(folder.path() / kLiveFile))->alarms.size(), 2U);
  std::signal(SIGTERM, before);
}

/// What another terminal shows of a run on this hardware after a step with an entropy of 0.25.
Frame watched(orchestrator::HardwareKind hardware) {
  const test::TemporaryFolder folder;
  orchestrator::PipelineConfig config;
  config.hardware = hardware;
  config.policy = actors::PolicyKind::Synthetic;
  auto recorder = orchestrator::RunRecorder::create(folder.path()).value();
  const ManualClock wall;
  RunWatch watch(folder.path(), config, *recorder, wall, Log::discard());
  watch.begin();
  orchestrator::SchedulerConfig scheduler;
  scheduler.actors = {{"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  recorder->feed({0, Time(), orchestrator::event::Started{scheduler}, {}});
  recorder->feed({1,
                  Time(1s),
                  orchestrator::event::DeadlineReached{},
                  {orchestrator::command::Train{ActorId(0), LeaseId(1), {}, {}}}});
  actors::UpdateMetrics metrics;
  metrics.entropy = 0.25;
  recorder->feed(
      {2,
       Time(2s),
       orchestrator::event::Trained{ActorId(0), LeaseId(1), PolicyVersion(1), {}, metrics},
       {}});
  watch.close(0);
  return frame_of(from_json<Live>(*read_file(folder.path() / kLiveFile)).value());
}

TEST(RunWatch, AnotherTerminalShowsTheMetricsOfTheLastStepAndWhetherRewardsAreRandom) {
  const Frame real = watched(orchestrator::HardwareKind::Local);
  EXPECT_FALSE(real.drawn);
  const auto entropy = std::ranges::find(real.last_step, "entropy", &StepFigure::name);
  ASSERT_NE(entropy, real.last_step.end());
  EXPECT_EQ(entropy->value, 0.25);
  EXPECT_TRUE(watched(orchestrator::HardwareKind::Simulated).drawn);
}

/// Time passes only while somebody looks at it.
class ClockOfAWriter final : public Clock {
 public:
  Time now() const override { return now_ += 500ms; }

 private:
  mutable Time now_{};
};

TEST(RunWatch, ALiveFileThatTakesLongToWriteIsWrittenLessOften) {
  const test::TemporaryFolder folder;
  const orchestrator::PipelineConfig config;
  auto recorder = orchestrator::RunRecorder::create(folder.path()).value();
  const ClockOfAWriter wall;
  RunWatch watch(folder.path(), config, *recorder, wall, Log::discard());
  watch.begin();
  orchestrator::SchedulerConfig scheduler;
  scheduler.actors = {{"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  recorder->feed({0, Time(), orchestrator::event::Started{scheduler}, {}});
  std::vector<int> written;
  for (int look = 0; look < 50; ++look) {
    watch.refresh({orchestrator::RunState()});
    if (std::filesystem::remove(folder.path() / kLiveFile))
      written.push_back(look);
  }
  EXPECT_EQ(written, (std::vector{0, 19, 38})) << "half a second of every ten";
}

/// Every file below a folder that is not being made.
std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    if (entry.is_regular_file() && name.find(".partial") == std::string::npos)
      files[name] = read_file(entry.path()).value();
  }
  return files;
}

TEST(RunWatch, AResumeChangesNoFileBeforeItHasReadTheWholeLog) {
  const test::TemporaryFolder folder;
  const orchestrator::PipelineConfig config;
  const ManualClock wall;
  orchestrator::SchedulerConfig scheduler;
  scheduler.actors = {{"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  std::vector<orchestrator::Record> log{{0, Time(), orchestrator::event::Started{scheduler}, {}}};
  for (std::uint64_t n = 1; n < 9; ++n) {
    const Time at(std::chrono::seconds(10 * n));
    log.push_back({log.size(),
                   at,
                   orchestrator::event::DeadlineReached{},
                   {orchestrator::command::Train{ActorId(0), LeaseId(n), {}, {}}}});
    log.push_back({log.size(),
                   at,
                   orchestrator::event::Trained{ActorId(0), LeaseId(n), PolicyVersion(n), {}, {}},
                   {}});
  }
  const auto play = [&](bool resume, const auto& after_each) {
    auto recorder = orchestrator::RunRecorder::create(folder.path()).value();
    RunWatch watch(folder.path(), config, *recorder, wall, Log::discard());
    if (!resume)
      watch.begin();
    for (const orchestrator::Record& record : log) {
      recorder->feed(record);
      watch.feed(record);
      after_each();
    }
    if (!resume) {
      watch.close(7);
      ASSERT_TRUE(recorder->close({"run", 3, 7}));
      return;
    }
    recorder->begin();
    watch.begin();
    recorder->feed({log.size(), Time(99s), orchestrator::event::Resumed{0}, {}});
  };
  play(false, [] {});
  ASSERT_TRUE(write_file_atomically(folder / "samples.jsonl", "{}\n"));
  const auto before = files_of(folder.path());
  for (const char* name : {"metrics.jsonl",
                           "certificates.jsonl",
                           "trace.json",
                           "summary.json",
                           "outputs.manifest",
                           "live.json",
                           "samples.jsonl",
                           "timeline/0.jsonl",
                           "timeline/3.jsonl",
                           "timeline/7.jsonl"})
    EXPECT_TRUE(before.contains(name)) << name;
  play(true, [&] { ASSERT_EQ(files_of(folder.path()), before); });
  EXPECT_NE(files_of(folder.path()), before) << "the log says that the run goes on";
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_NE(entry.path().extension(), ".partial") << entry.path();
}

}  // namespace
}  // namespace temper::cli
