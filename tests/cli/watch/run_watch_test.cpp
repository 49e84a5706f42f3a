// What a run asks of itself when alarms are raised.
#include "cli/watch/run_watch.hpp"

#include "core/json_read.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

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
  watch.begin();
  orchestrator::SchedulerConfig scheduler;
  scheduler.actors = {{"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  recorder->feed({0, Time(), orchestrator::event::Started{scheduler}, {}});
  watch.refresh(orchestrator::Scheduler(), Time());
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
  watch.close(0);
  EXPECT_EQ(from_json<Live>(*read_file(folder.path() / kLiveFile))->alarms.size(), 2U);
  std::signal(SIGTERM, before);
}

}  // namespace
}  // namespace temper::cli
