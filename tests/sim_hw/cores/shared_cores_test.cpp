#include "sim_hw/cores/shared_cores.hpp"

#include <gtest/gtest.h>

#include <map>

namespace temper::sim_hw {
namespace {

using namespace std::chrono_literals;

Time at(Duration d) {
  return Time(d);
}

SharedCores::Work work(double seconds, std::vector<std::uint32_t> cores = {}, double slowdown = 1) {
  SharedCores::Work w;
  w.seconds = seconds;
  w.cores = std::move(cores);
  w.slowdown = slowdown;
  return w;
}

/// End time of each job, by id.
std::map<SharedCores::JobId, Time> ends(SharedCores& cores) {
  std::map<SharedCores::JobId, Time> out;
  while (const auto next = cores.next_end()) {
    cores.advance(*next);
    for (const auto job : cores.take_ended())
      out[job] = *next;
  }
  return out;
}

TEST(SharedCores, ASingleJobRunsAtFullSpeed) {
  SharedCores cores(2);
  const auto job = cores.start(work(0.01, {0}, 1.5));
  EXPECT_EQ(ends(cores).at(job), at(10ms));
  EXPECT_TRUE(cores.idle());
}

TEST(SharedCores, JobsOfOneCoreShareItEqually) {
  SharedCores cores(1);
  const auto two = cores.start(work(0.002));
  const auto six = cores.start(work(0.006));
  const auto end = ends(cores);
  EXPECT_EQ(end.at(two), at(4ms));  // half of the core until its end
  EXPECT_EQ(end.at(six), at(8ms));  // 2 ms done by then, then 4 ms alone
}

TEST(SharedCores, FreeJobsRunOnTheLeastCrowdedCoreAndMove) {
  SharedCores cores(2);
  const auto zero = cores.start(work(0.004, {0}));
  const auto one = cores.start(work(0.001, {1}));
  const auto free = cores.start(work(0.003));
  const auto end = ends(cores);
  // A tie goes to the lower core: 0 and the free one share it until 1 is free, at 1 ms; then the
  // free one has core 1 for itself, with 2.5 ms left, and core 0 has 3.5 ms left.
  EXPECT_EQ(end.at(one), at(1ms));
  EXPECT_EQ(end.at(free), at(3500us));
  EXPECT_EQ(end.at(zero), at(4500us));
}

TEST(SharedCores, BusyCoresSlowAJobDown) {
  SharedCores cores(2);
  const auto slowed = cores.start(work(0.002, {0}, 2));
  cores.start(work(0.002, {1}));
  // Half speed for 2 ms; then the other core is idle and 1 ms is left.
  EXPECT_EQ(ends(cores).at(slowed), at(3ms));
}

TEST(SharedCores, ATeamWaitsForItsSlowestMember) {
  SharedCores cores(2);
  SharedCores::Work team_work = work(0.002, {}, 2);
  team_work.spread = SharedCores::Spread::AllOf;
  const auto team = cores.start(team_work);
  const auto on_one = cores.start(work(0.001, {1}));
  const auto end = ends(cores);
  EXPECT_EQ(end.at(on_one), at(2ms));  // half of core 1
  EXPECT_EQ(end.at(team), at(3ms));    // half speed until then: 1 ms left
}

TEST(SharedCores, EmptyWorkEndsAtOnce) {
  SharedCores cores(1);
  cores.advance(at(5ms));
  const auto job = cores.start({});
  EXPECT_EQ(ends(cores).at(job), at(5ms));
}

}  // namespace
}  // namespace temper::sim_hw
