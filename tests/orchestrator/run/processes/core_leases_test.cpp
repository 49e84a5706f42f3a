#include "orchestrator/run/processes/core_leases.hpp"

#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace temper::orchestrator {
namespace {

using Cores = std::vector<std::uint32_t>;

/// A process that takes cores and keeps them until it is ended.
class OtherRun {
 public:
  OtherRun(const Cores& usable, std::size_t count, const std::filesystem::path& file) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const CoreLeases leases = CoreLeases::take(usable, count, file);
      static_cast<void>(!::write(ends[1], "x", 1));
      for (;;)
        ::pause();
    }
    char taken = 0;
    EXPECT_EQ(::read(ends[0], &taken, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  OtherRun(const OtherRun&) = delete;
  OtherRun& operator=(const OtherRun&) = delete;
  ~OtherRun() { end(); }

  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0)
      return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

class CoreLeasesTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "cores"; }
  test::TemporaryFolder folder_;
};

TEST_F(CoreLeasesTest, ARunAloneHasTheFirstCores) {
  const CoreLeases leases = CoreLeases::take(Cores{2, 3, 5, 7}, 3, file());
  EXPECT_EQ(leases.cores(), (Cores{2, 3, 5}));
  EXPECT_TRUE(leases.others().empty());
  EXPECT_EQ(to_text(leases.others()), "");
}

TEST_F(CoreLeasesTest, AnotherRunGetsOtherCoresAsLongAsThereAreAny) {
  const OtherRun first({0, 1, 2, 3}, 2, file());
  const CoreLeases leases = CoreLeases::take(Cores{0, 1, 2, 3}, 2, file());
  EXPECT_EQ(leases.cores(), (Cores{2, 3}));
  EXPECT_TRUE(leases.others().empty());
}

TEST_F(CoreLeasesTest, WhereTooFewAreLeftItSharesAndSaysWithWhom) {
  const OtherRun first({0, 1, 2}, 2, file());
  const CoreLeases leases = CoreLeases::take(Cores{0, 1, 2}, 3, file());
  EXPECT_EQ(leases.cores(), (Cores{0, 1, 2}));
  ASSERT_EQ(leases.others().size(), 1U);
  EXPECT_EQ(leases.others()[0].process, first.pid());
  EXPECT_EQ(leases.others()[0].cores, (Cores{0, 1}));
  const std::string said = to_text(leases.others());
  EXPECT_TRUE(said.starts_with(
      fmt::format("cores 0, 1 are also used by process {} (test_run", first.pid())))
      << said;
}

TEST_F(CoreLeasesTest, WhatAProcessThatWasKilledHadIsFree) {
  OtherRun first({0, 1}, 2, file());
  first.end();
  const CoreLeases leases = CoreLeases::take(Cores{0, 1}, 2, file());
  EXPECT_TRUE(leases.others().empty());
}

TEST_F(CoreLeasesTest, WithoutTheFileARunBeginsAllTheSame) {
  const CoreLeases leases = CoreLeases::take(Cores{4, 6}, 1, folder_ / "no" / "folder");
  EXPECT_EQ(leases.cores(), (Cores{4}));
  EXPECT_TRUE(leases.others().empty());
}

}  // namespace
}  // namespace temper::orchestrator
