#include "actors/guard/guarded_process.hpp"

#include "tests/actors/guard/guarded.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace temper::actors {
namespace {

class Guard : public ::testing::Test {
 protected:
  Guard() {
    // The FIFO reports end of file once every process that held it open for writing has ended.
    alive_path_ = (folder_ / "alive").string();
    EXPECT_EQ(::mkfifo(alive_path_.c_str(), 0600), 0);
    alive_ = FileDescriptor(::open(alive_path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }

  /// A command that holds the FIFO open, starts a child that does too, and another one in its own
  /// session whose parent has ended. It writes "ready" to the FIFO, then runs `then`.
  std::vector<std::string> family(const std::string& then = "wait") const {
    const auto file = folder_ / "family.sh";
    std::ofstream(file) << "exec 9>" << alive_path_ << "\n"
                        << "sleep 1000 &\n"
                        << "(setsid sh -c 'echo ready >&9; sleep 1000 & wait' &)\n"
                        << then << "\n";
    return {"/bin/sh", file.string()};
  }

  const test::TemporaryFolder folder_;
  std::string alive_path_;
  FileDescriptor alive_;
};

std::vector<std::string> shell(const std::string& script) {
  return {"sh", "-c", script};
}

TEST_F(Guard, RunsACommandFoundInPathWithItsPipes) {
  auto process = GuardedProcess::start(shell("read x; echo \"got $x\"; echo oops >&2; exit 3"));
  ASSERT_TRUE(process) << process.error().context;
  ASSERT_EQ(::write(process->input(), "it\n", 3), 3);
  EXPECT_EQ(read_until(process->output()), "got it\n");
  EXPECT_EQ(read_until(process->errors()), "oops\n");
  EXPECT_TRUE(wait_until_gone(*process));
  EXPECT_EQ(process->how_it_ended(), "exit code 3");
}

TEST_F(Guard, ReportsTheSignalThatEndedTheCommand) {
  auto process = GuardedProcess::start(shell("kill -SEGV $$"));
  ASSERT_TRUE(process);
  EXPECT_TRUE(wait_until_gone(*process));
  EXPECT_EQ(process->how_it_ended(), "killed by signal 11 (Segmentation fault)");
}

TEST_F(Guard, RejectsFilesThatCannotBeExecuted) {
  const auto error = [](const std::vector<std::string>& command) {
    const auto process = GuardedProcess::start(command);
    return process ? std::string("started") : process.error().context;
  };
  EXPECT_EQ(error({}), "the command is empty");
  EXPECT_EQ(error({"no-such-program-anywhere"}),
            "no executable `no-such-program-anywhere` in PATH");
  EXPECT_EQ(error({"/no/such/file"}), "cannot execute /no/such/file: No such file or directory");
  EXPECT_EQ(error({"/tmp"}), "cannot execute /tmp: Permission denied");
  const auto no_shebang = folder_ / "text";
  std::ofstream(no_shebang) << "neither a program nor a script\n";
  std::filesystem::permissions(no_shebang, std::filesystem::perms::owner_all);
  EXPECT_EQ(error({no_shebang.string()}),
            "cannot execute " + no_shebang.string() + ": Exec format error");
}

TEST_F(Guard, GivesTheCommandDefaultSignalsAndItsOwnGroup) {
  ::signal(SIGPIPE, SIG_IGN);  // A child would inherit this setting.
  auto process = GuardedProcess::start(
      shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; ps -o pgid= -p $$ | tr -d ' '; echo $$"));
  ::signal(SIGPIPE, SIG_DFL);
  ASSERT_TRUE(process);
  std::istringstream out(read_until(process->output()));
  std::string name;
  std::string mask;
  for (int i = 0; i < 2; ++i) {
    out >> name >> mask;
    EXPECT_EQ(mask, "0000000000000000") << name;
  }
}

TEST_F(Guard, InheritsOnlyThreeDescriptors) {
  const FileDescriptor leak(::open("/dev/null", O_RDONLY));  // Without O_CLOEXEC.
  const auto other = GuardedProcess::start(shell("cat"));
  auto process = GuardedProcess::start({"ls", "/proc/self/fd"});
  ASSERT_TRUE(process);
  EXPECT_EQ(read_until(process->output()), "0\n1\n2\n3\n");  // 3: the folder that ls reads.
}

TEST_F(Guard, KillsEveryDescendantWhenDestroyed) {
  {
    auto process = GuardedProcess::start(family());
    ASSERT_TRUE(process);
    ASSERT_EQ(read_until(alive_.get(), "\n"), "ready\n");
  }
  EXPECT_TRUE(is_end_of_file(alive_.get()));
}

TEST_F(Guard, KillsTheDescendantsOfACommandThatEnds) {
  auto process = GuardedProcess::start(family("read x; exit 0"));
  ASSERT_TRUE(process);
  ASSERT_EQ(read_until(alive_.get(), "\n"), "ready\n");
  ASSERT_EQ(::write(process->input(), "\n", 1), 1);
  EXPECT_TRUE(wait_until_gone(*process));
  EXPECT_TRUE(is_end_of_file(alive_.get()));
  EXPECT_EQ(process->how_it_ended(), "exit code 0");
}

TEST_F(Guard, KillsEveryDescendantWhenItsOwnerIsKilled) {
  const std::vector<std::string> command = family();
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto process = GuardedProcess::start(command);
    // Its guard must not inherit the pipe of the first one.
    const auto second = GuardedProcess::start({"cat"});
    for (;;)
      ::pause();
  }
  ASSERT_EQ(read_until(alive_.get(), "\n"), "ready\n");
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  ::waitpid(owner, nullptr, 0);
  EXPECT_TRUE(is_end_of_file(alive_.get()));
}

TEST_F(Guard, SurvivesASignalToItsOwnersWholeGroup) {
  const std::vector<std::string> command = family();
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::setpgid(0, 0);
    const auto process = GuardedProcess::start(command);
    for (;;)
      ::pause();
  }
  ASSERT_EQ(read_until(alive_.get(), "\n"), "ready\n");
  ASSERT_EQ(::kill(-owner, SIGKILL), 0);
  ::waitpid(owner, nullptr, 0);
  EXPECT_TRUE(is_end_of_file(alive_.get()));
}

TEST_F(Guard, TheCommandDoesNotOutliveItsGuard) {
  const auto file = folder_ / "command.sh";
  std::ofstream(file) << "exec 9>" << alive_path_ << "\necho $PPID\nexec sleep 1000\n";
  auto process = GuardedProcess::start({"/bin/sh", file.string()});
  ASSERT_TRUE(process);
  const pid_t guard = std::stoi(read_until(process->output(), "\n"));
  ASSERT_EQ(::kill(guard, SIGKILL), 0);
  EXPECT_TRUE(wait_until_gone(*process));
  EXPECT_EQ(process->how_it_ended(), std::nullopt);
  EXPECT_TRUE(is_end_of_file(alive_.get()));
}

}  // namespace
}  // namespace temper::actors
