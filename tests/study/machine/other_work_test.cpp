#include "study/machine/other_work.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace temper::study {
namespace {

constexpr std::uint32_t kBoth[] = {0, 1};
constexpr const char* kStat =
    "cpu  300 0 100 600 0 0 0 0 0 0\n"
    "cpu0 100 0 100 200 50 0 0 50 0 0\n"
    "cpu1 200 0 0 400 0 0 0 0 0 0\n"
    "intr 1 2 3\n";

TEST(OtherWork, ReadsCoreTimesFromTheKernel) {
  const auto both = read_core_accounts(kStat, kBoth, 100);
  ASSERT_TRUE(both);
  EXPECT_DOUBLE_EQ(both->all, 5 + 6);  // hundredths of a second
  EXPECT_DOUBLE_EQ(both->busy,
                   2.5 + 2);  // idle and waiting for a disk are not busy; stolen time is
}

TEST(OtherWork, IgnoresOtherCores) {
  constexpr std::uint32_t kSecond[] = {1};
  EXPECT_DOUBLE_EQ(read_core_accounts(kStat, kSecond, 100)->busy, 2);
}

TEST(OtherWork, UnknownCoresGiveNoAccounts) {
  constexpr std::uint32_t kThird[] = {2};
  EXPECT_FALSE(read_core_accounts(kStat, kThird, 100));
  EXPECT_FALSE(read_core_accounts("", kBoth, 100));
}

TEST(OtherWork, IsBusyTimeOfOtherProcesses) {
  // Of 20 s on two cores 12 were busy, 7 of them by this process: others took 5 of 20.
  EXPECT_DOUBLE_EQ(share_of_others({1, 10, 3}, {13, 30, 10}), 0.25);
}

TEST(OtherWork, IgnoresIntervalsBelowASecond) {
  EXPECT_EQ(share_of_others({0, 0, 0}, {0.9, 0.9, 0}), 0);
}

/// A machine on which others take these shares of its time in turn; records the kept attempts.
struct Machine {
  std::vector<double> shares;
  std::size_t tries = 0;
  std::optional<std::size_t> kept;
  CoreAccounts now;

  Result<double> measure() {
    return measure_quietly(
        [this]() -> Status {
          now.all += 10;
          now.busy += 10 * shares.at(tries++);
          return {};
        },
        [this] { kept = tries - 1; },
        [this] { return std::optional(now); });
  }
};

TEST(OtherWork, AQuietMachineIsMeasuredOnce) {
  Machine machine{.shares = {0.02}, .kept = {}, .now = {}};
  EXPECT_NEAR(machine.measure().value(), 0.02, 1e-12);
  EXPECT_EQ(machine.tries, 1U);
}

TEST(OtherWork, ABusyMachineIsMeasuredAgainUntilItIsQuiet) {
  Machine machine{.shares = {0.5, 0.01}, .kept = {}, .now = {}};
  EXPECT_NEAR(machine.measure().value(), 0.01, 1e-12);
  EXPECT_EQ(machine.tries, 2U);
  EXPECT_EQ(machine.kept, 1U);
}

TEST(OtherWork, ABusyMachineKeepsTheQuietestAttempt) {
  Machine machine{.shares = {0.5, 0.2, 0.4}, .kept = {}, .now = {}};
  EXPECT_NEAR(machine.measure().value(), 0.2, 1e-12);
  EXPECT_EQ(machine.tries, 3U);
  EXPECT_EQ(machine.kept, 1U);
}

TEST(OtherWork, AMachineWithoutAccountsCountsAsQuiet) {
  int tries = 0;
  const auto others = measure_quietly(
      [&]() -> Status {
        ++tries;
        return {};
      },
      [] {},
      [] { return std::optional<CoreAccounts>(); });
  EXPECT_EQ(others.value(), 0);
  EXPECT_EQ(tries, 1);
}

TEST(OtherWork, FailedMeasurementsAreNotRepeated) {
  int tries = 0;
  const auto others = measure_quietly(
      [&]() -> Status {
        ++tries;
        return invalid_input("no engine");
      },
      [] {},
      [] { return std::optional<CoreAccounts>(); });
  EXPECT_FALSE(others);
  EXPECT_EQ(tries, 1);
}

}  // namespace
}  // namespace temper::study
