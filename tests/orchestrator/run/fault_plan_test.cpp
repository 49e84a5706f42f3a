#include "orchestrator/run/fault_plan.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr ClusterShape kShape{.cards = 24, .cards_per_host = 8, .hosts_per_supernode = 2};

actors::FaultConfig config(double rate) {
  actors::FaultConfig c;
  c.rate = rate;
  c.supernode_mtbf = std::chrono::hours(100000);
  return c;
}

std::vector<CardId> cards(std::uint32_t first, std::uint32_t count) {
  std::vector<CardId> all;
  for (std::uint32_t i = 0; i < count; ++i)
    all.emplace_back(first + i);
  return all;
}

TEST(FaultPlan, IsTheSameForTheSameSeedAndAnotherForAnother) {
  FaultPlan first = FaultPlan::create(config(1000), kShape, 7).value();
  FaultPlan again = FaultPlan::create(config(1000), kShape, 7).value();
  FaultPlan other = FaultPlan::create(config(1000), kShape, 8).value();
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const Fault fault = first.take();
    EXPECT_EQ(fault, again.take());
    differs = differs || !(fault == other.take());
  }
  EXPECT_TRUE(differs);
}

TEST(FaultPlan, EachKindFailsAsOftenAsItsComponentsAndMeanTimeSay) {
  std::map<FaultKind, int> counts;
  constexpr double kYears = 20000;
  // Times of so many years do not fit: the plan is cut into parts, each from its own seed.
  double years = 0;
  for (std::uint64_t seed = 0; years < kYears; ++seed) {
    FaultPlan plan = FaultPlan::create(config(1), kShape, seed).value();
    Time last{};
    while (plan.next() && *plan.next() < Time(std::chrono::hours(24 * 365 * 50))) {
      const Fault fault = plan.take();
      EXPECT_GE(fault.at, last);
      EXPECT_GE(fault.index, 0);
      EXPECT_LT(fault.index, kShape.count(fault.kind));
      last = fault.at;
      ++counts[fault.kind];
    }
    years += 50;
  }
  const double hours = kYears * 365 * 24;
  EXPECT_NEAR(counts[FaultKind::Card], hours * 24 / 79200, 0.02 * hours * 24 / 79200);
  EXPECT_NEAR(counts[FaultKind::Host], hours * 3 / 57700, 0.05 * hours * 3 / 57700);
  EXPECT_NEAR(counts[FaultKind::Link], hours * 24 / 505600, 0.05 * hours * 24 / 505600);
  EXPECT_NEAR(counts[FaultKind::Supernode], hours * 2 / 100000, 0.1 * hours * 2 / 100000);
}

TEST(FaultPlan, WithoutARateNothingFails) {
  EXPECT_EQ(FaultPlan::create(config(0), kShape, 1)->next(), std::nullopt);
}

TEST(FaultPlan, FailuresSoOftenThatTimeHardlyPassesAreRefusedWithTheirKey) {
  // 24 cards of 79,200 h each, 1e9 times as often: one every 11.9 ms.
  actors::FaultConfig short_lived = config(1);
  short_lived.link_mtbf = Duration(1);
  const std::pair<actors::FaultConfig, const char*> refused[] = {
      {config(1e9), "every 0.012 s"},
      {config(std::numeric_limits<double>::infinity()), "simulation.faults.rate is inf"},
      {short_lived, "simulation.faults.link_mtbf"}};
  for (const auto& [faults, part] : refused) {
    const auto plan = FaultPlan::create(faults, kShape, 1);
    ASSERT_FALSE(plan) << part;
    EXPECT_NE(plan.error().context.find(part), std::string::npos) << plan.error().context;
  }
}

TEST(FaultPlan, ATraceIsPlayedInTheOrderOfItsTimes) {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "faults.csv").string();
  ASSERT_TRUE(write_file_atomically(path, "# what failed\n20,host,1\n5.5,card,23\n\n30,link,0\n"));
  actors::FaultConfig c;
  c.trace = path;
  FaultPlan plan = FaultPlan::create(c, kShape, 1).value();
  EXPECT_EQ(plan.take(), (Fault{Time(std::chrono::milliseconds(5500)), FaultKind::Card, 23}));
  EXPECT_EQ(plan.take(), (Fault{Time(std::chrono::seconds(20)), FaultKind::Host, 1}));
  EXPECT_EQ(plan.take(), (Fault{Time(std::chrono::seconds(30)), FaultKind::Link, 0}));
  EXPECT_EQ(plan.next(), std::nullopt);
}

TEST(FaultPlan, ACardCanStandStillOrBeSlowForAWhile) {
  const test::TemporaryFolder folder;
  actors::FaultConfig c;
  c.trace = (folder / "faults.csv").string();
  ASSERT_TRUE(write_file_atomically(c.trace, "2,stop,3,0.5\n3,slow,4,10,2\n"));
  FaultPlan plan = FaultPlan::create(c, kShape, 1).value();
  const Fault stop = plan.take(), slow = plan.take();
  EXPECT_EQ(
      stop,
      (Fault{Time(std::chrono::seconds(2)), FaultKind::Stop, 3, std::chrono::milliseconds(500)}));
  EXPECT_EQ(
      slow,
      (Fault{Time(std::chrono::seconds(3)), FaultKind::Slow, 4, std::chrono::seconds(10), 2}));
  HostPool pool(c, kShape);
  EXPECT_TRUE(pool.fail(stop).empty());
  EXPECT_TRUE(pool.fail(slow).empty());
}

TEST(FaultPlan, ALineThatIsNoFailureOfThisClusterIsAnErrorThatNamesIt) {
  const test::TemporaryFolder folder;
  actors::FaultConfig c;
  c.trace = (folder / "faults.csv").string();
  for (const char* line : {"1,card,24",
                           "1,host,3",
                           "x,card,1",
                           "1,disk,1",
                           "1,card",
                           "-1,card,0",
                           "1,card,0,5",
                           "1,stop,0",
                           "1,stop,0,-1",
                           "1,stop,0,1,2",
                           "1,slow,0,1",
                           "1,slow,0,1,1",
                           "1,slow,0,1,1e3"}) {
    ASSERT_TRUE(write_file_atomically(c.trace, std::string("1,card,0\n") + line + "\n"));
    const auto plan = FaultPlan::create(c, kShape, 1);
    ASSERT_FALSE(plan) << line;
    EXPECT_NE(plan.error().context.find("faults.csv, line 2"), std::string::npos);
  }
}

TEST(HostPool, AHostThatFailedIsReplacedByASpareAndBecomesOne) {
  actors::FaultConfig c;
  c.spares = 1;
  HostPool pool(c, kShape);
  const Time now = Time(std::chrono::hours(1));
  EXPECT_EQ(pool.fail({now, FaultKind::Card, 9}).size(), 8U);  // all of host 1
  EXPECT_EQ(pool.usable_from(cards(8, 8)), now + c.replacement);
  EXPECT_EQ(pool.usable_from(cards(0, 8)), Time{});
  // The only spare is used up: the next host waits, no longer than for its own repair.
  const Time later = now + std::chrono::hours(1);
  pool.fail({later, FaultKind::Host, 0});
  EXPECT_EQ(pool.usable_from(cards(0, 8)), now + c.repair + c.replacement);
  const Time latest = now + std::chrono::hours(3);
  pool.fail({latest, FaultKind::Host, 2});
  EXPECT_EQ(pool.usable_from(cards(16, 8)), later + c.repair + c.replacement);
}

TEST(HostPool, WhatIsOutOfUseDoesNotFailAgain) {
  HostPool pool({}, kShape);
  EXPECT_FALSE(pool.fail({Time(std::chrono::seconds(1)), FaultKind::Host, 1}).empty());
  EXPECT_TRUE(pool.fail({Time(std::chrono::seconds(2)), FaultKind::Card, 8}).empty());
}

TEST(HostPool, LinksAndSupernodesComeBackWhereTheyAre) {
  actors::FaultConfig c;
  c.spares = 9;
  HostPool pool(c, kShape);
  const Time now = Time(std::chrono::hours(1));
  EXPECT_EQ(pool.fail({now, FaultKind::Link, 3}), (std::set<CardId>{CardId(3)}));
  EXPECT_EQ(pool.usable_from(cards(0, 8)), now + c.link_repair);
  EXPECT_EQ(pool.fail({now, FaultKind::Supernode, 1}).size(), 8U);  // the last host
  EXPECT_EQ(pool.usable_from(cards(16, 8)), now + c.link_repair);
}

}  // namespace
}  // namespace temper::orchestrator
