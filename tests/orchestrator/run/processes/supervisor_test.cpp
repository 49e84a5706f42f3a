#include "orchestrator/run/processes/supervisor.hpp"

#include "actors/asio/asio.hpp"
#include "core/clock.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Far beyond what any of these takes; only a failing test waits so long.
constexpr Duration kPatience = 20s;

class SupervisorTest : public testing::TestWithParam<Supervisor::Notice> {
 protected:
  ChildSpec shell(const std::string& name, const std::string& script) const {
    return {.name = name,
            .command = {"/bin/sh", "-c", script},
            .environment = {{"TEMPER_TEST", "from the spec"}},
            .log = folder_ / (name + ".log")};
  }
  std::function<void(const ChildExit&)> collect() {
    return [this](const ChildExit& exit) { exits_.push_back(exit); };
  }
  /// Runs the loop until `count` children have ended.
  void await_exits(std::size_t count) {
    const RealClock clock;
    while (exits_.size() < count && clock.now() < Time(kPatience)) {
      io_.restart();
      io_.run_one_for(100ms);
    }
    ASSERT_EQ(exits_.size(), count);
  }

  const test::TemporaryFolder folder_;
  boost::asio::io_context io_;
  std::vector<ChildExit> exits_;
};

INSTANTIATE_TEST_SUITE_P(Notices,
                         SupervisorTest,
                         testing::Values(Supervisor::Notice::Pidfd, Supervisor::Notice::Signal),
                         [](const auto& p) {
                           return p.param == Supervisor::Notice::Pidfd ? "Pidfd" : "Signal";
                         });

TEST_P(SupervisorTest, ReportsTheExitCodeAndTheLastLines) {
  Supervisor supervisor(io_, collect(), GetParam());
  ASSERT_TRUE(supervisor.start(shell("a", "echo $TEMPER_TEST; echo oh no >&2; exit 3")));
  EXPECT_TRUE(supervisor.is_running("a"));
  await_exits(1);
  EXPECT_EQ(exits_[0].name, "a");
  EXPECT_FALSE(exits_[0].success);
  EXPECT_EQ(exits_[0].status, "exit code 3");
  EXPECT_EQ(exits_[0].log_tail, "from the spec\noh no\n");
  EXPECT_FALSE(supervisor.is_running("a"));
}

TEST_P(SupervisorTest, ReportsASignal) {
  Supervisor supervisor(io_, collect(), GetParam());
  ASSERT_TRUE(supervisor.start(shell("a", "kill -9 $$")));
  await_exits(1);
  EXPECT_EQ(exits_[0].status, "killed by signal 9 (Killed)");
}

TEST_P(SupervisorTest, NoticesManyExitsAtOnce) {
  Supervisor supervisor(io_, collect(), GetParam());
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(supervisor.start(shell("child-" + std::to_string(i), "exit 0")));
  await_exits(20);
  for (const ChildExit& exit : exits_)
    EXPECT_TRUE(exit.success) << exit.name << " " << exit.status;
}

TEST_P(SupervisorTest, AChildMayBeReplacedFromTheCallback) {
  std::vector<std::string> tails;
  std::unique_ptr<Supervisor> supervisor;
  supervisor = std::make_unique<Supervisor>(
      io_,
      [&](const ChildExit& exit) {
        tails.push_back(exit.log_tail);
        exits_.push_back(exit);
        if (exits_.size() == 1) {
          EXPECT_TRUE(supervisor->start(shell("a", "echo second")));
        }
      },
      GetParam());
  ASSERT_TRUE(supervisor->start(shell("a", "echo first")));
  await_exits(2);
  EXPECT_EQ(tails, (std::vector<std::string>{"first\n", "second\n"}));
}

TEST_P(SupervisorTest, StopIsGentleFirst) {
  Supervisor supervisor(io_, collect(), GetParam());
  // "ready" is awaited so that the trap is set before the signal comes.
  const fs::path fifo = folder_ / "ready";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_TRUE(supervisor.start(shell("a",
                                     "trap 'echo bye; exit 0' TERM; echo ready > " + fifo.string() +
                                         "; while :; do sleep 0.01; done")));
  std::string line;
  std::ifstream(fifo) >> line;
  supervisor.stop("a", kPatience);
  await_exits(1);
  EXPECT_TRUE(exits_[0].success) << exits_[0].status;
  EXPECT_EQ(exits_[0].log_tail, "bye\n");
}

TEST_P(SupervisorTest, StopKillsAtTheDeadline) {
  Supervisor supervisor(io_, collect(), GetParam());
  const fs::path fifo = folder_ / "ready";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_TRUE(supervisor.start(
      shell("a", "trap '' TERM; echo ready > " + fifo.string() + "; while :; do sleep 1; done")));
  std::string line;
  std::ifstream(fifo) >> line;
  supervisor.stop_all(20ms);
  await_exits(1);
  EXPECT_EQ(exits_[0].status, "killed by signal 9 (Killed)");
}

TEST_P(SupervisorTest, AProgramThatDoesNotExistIsAnErrorThatNamesIt) {
  Supervisor supervisor(io_, collect(), GetParam());
  const auto pid = supervisor.start(
      {.name = "a", .command = {"/nowhere/temper"}, .environment = {}, .log = folder_ / "log"});
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().context, "a: cannot execute /nowhere/temper: No such file or directory");
  EXPECT_EQ(supervisor.running(), 0U);
}

TEST_P(SupervisorTest, ALogThatCannotBeOpenedIsAnError) {
  Supervisor supervisor(io_, collect(), GetParam());
  ChildSpec spec = shell("a", "exit 0");
  spec.log = folder_ / "missing" / "a.log";
  const auto pid = supervisor.start(spec);
  ASSERT_FALSE(pid);
  EXPECT_NE(pid.error().context.find("cannot open log"), std::string::npos);
}

TEST_P(SupervisorTest, ANameIsUsedOnce) {
  Supervisor supervisor(io_, collect(), GetParam());
  ASSERT_TRUE(supervisor.start(shell("a", "sleep 600")));
  EXPECT_FALSE(supervisor.start(shell("a", "sleep 600")));
}

TEST_P(SupervisorTest, AChildInheritsNoDescriptorAndNoBlockedSignal) {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int leaky = ::fcntl(null, F_DUPFD, 100);  // Without O_CLOEXEC, as a library might.
  ASSERT_GE(leaky, 100);
  Supervisor supervisor(io_, collect(), GetParam());
  const std::string script =
      fmt::format("test -e /proc/self/fd/{} && echo leaked; grep SigBlk /proc/self/status", leaky);
  ASSERT_TRUE(supervisor.start(shell("a", script)));
  await_exits(1);
  EXPECT_EQ(exits_[0].log_tail, "SigBlk:\t0000000000000000\n");
  ::close(leaky);
  ::close(null);
}

/// True once `fd` is readable: for a pidfd, once its process has ended.
bool becomes_readable(int fd) {
  pollfd item{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {  // SIGCHLD may come between.
    ready = ::poll(&item, 1, static_cast<int>(kPatience / 1ms));
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

int open_pidfd(std::int64_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U));
}

TEST_P(SupervisorTest, TheDestructorLeavesNobodyBehind) {
  std::vector<int> pidfds;
  {
    Supervisor supervisor(io_, collect(), GetParam());
    for (const char* name : {"a", "b"}) {
      const auto pid = supervisor.start(shell(name, "trap '' TERM INT; while :; do sleep 1; done"));
      ASSERT_TRUE(pid);
      pidfds.push_back(open_pidfd(*pid));
    }
  }
  for (const int fd : pidfds) {
    EXPECT_TRUE(becomes_readable(fd));
    ::close(fd);
  }
  EXPECT_TRUE(exits_.empty());
}

TEST_P(SupervisorTest, AKilledParentTakesItsChildrenAlong) {
  const fs::path fifo = folder_ / "pids";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Supervisor supervisor(io_, collect(), GetParam());
  const auto parent = supervisor.start(
      {.name = "parent",
       .command = {TEMPER_SUPERVISOR_HELPER, fifo.string(), (folder_ / "children.log").string()},
       .environment = {},
       .log = folder_ / "parent.log"});
  ASSERT_TRUE(parent) << parent.error().context;
  const int fd = ::open(fifo.c_str(), O_RDWR);  // Does not wait for the writer.
  ASSERT_TRUE(becomes_readable(fd));
  char text[64] = {};
  ASSERT_GT(::read(fd, text, sizeof(text) - 1), 0);
  ::close(fd);

  std::vector<int> pidfds;
  std::istringstream pids(text);
  for (std::int64_t pid = 0; pids >> pid;) {
    pidfds.push_back(open_pidfd(pid));
    EXPECT_GE(pidfds.back(), 0) << "a child of the helper runs";
  }
  ASSERT_EQ(pidfds.size(), 2U);
  ASSERT_EQ(::kill(static_cast<pid_t>(*parent), SIGKILL), 0);
  for (const int child : pidfds) {
    EXPECT_TRUE(becomes_readable(child));
    ::close(child);
  }
}

TEST_P(SupervisorTest, WhatAChildLeftInItsGroupEndsWithIt) {
  const fs::path fifo = folder_ / "pid";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Supervisor supervisor(io_, collect(), GetParam());
  ASSERT_TRUE(supervisor.start(
      shell("a", "sleep 600 & echo $! > " + fifo.string() + "; read go < " + fifo.string())));
  std::int64_t grandchild = 0;
  std::ifstream(fifo) >> grandchild;
  const int pidfd = open_pidfd(grandchild);
  ASSERT_GE(pidfd, 0);
  std::ofstream(fifo) << "go" << std::endl;
  await_exits(1);
  EXPECT_TRUE(becomes_readable(pidfd));
  ::close(pidfd);
}

}  // namespace
}  // namespace temper::orchestrator
