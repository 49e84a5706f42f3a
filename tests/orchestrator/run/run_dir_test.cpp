// RunDir: a folder that is new, one that holds a run, one that cannot be written; who holds it; and
// what it is made from.
#include "orchestrator/run/run_dir.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

class RunDirTest : public ::testing::Test {
 protected:
  const fs::path& folder() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

RunDir created(const fs::path& root) {
  RunDir dir(root);
  EXPECT_TRUE(dir.create());
  return dir;
}

TEST_F(RunDirTest, ANewRunGetsItsFoldersAndTheirParents) {
  const RunDir dir = created(folder() / "runs" / "today");
  EXPECT_TRUE(fs::is_directory(dir.file("checkpoints")));
  EXPECT_TRUE(fs::is_directory(dir.file("logs")));
  EXPECT_EQ(dir.log_of("rollout-0"), dir.root() / "logs" / "rollout-0.log");
}

TEST_F(RunDirTest, TheLogOfAWorkerIsCutWhereItGrowsBeyondItsBound) {
  const RunDir dir = created(folder());
  const fs::path log = dir.log_of("rollout-0"), server = dir.log_of("rollout-0.server");
  const fs::path ours = dir.log_of("orchestrator"), small = dir.log_of("trainer");
  for (const fs::path& path : {log, server, ours}) {
    std::ofstream(path) << std::string(100, 'a') << '\n';
    fs::resize_file(path, kLogBytes);
    std::ofstream(path, std::ios::app) << "last words\n";
  }
  std::ofstream(small) << "a line\n";
  std::ofstream writer(log, std::ios::app);  // as a worker: it goes on
  dir.bound_logs();
  writer << "more\n" << std::flush;
  for (const fs::path& path : {log, server}) {
    EXPECT_LT(fs::file_size(path), 1000U);
    const std::string kept = read_file(path.string() + ".1").value();
    EXPECT_EQ(std::ssize(kept), kLogKept);
    EXPECT_TRUE(kept.ends_with("last words\n"));
  }
  const std::string text = read_file(log).value();
  EXPECT_TRUE(text.ends_with("more\n")) << text;
  EXPECT_NE(text.find("rollout-0.log.1"), std::string::npos) << text;
  EXPECT_GT(fs::file_size(ours), static_cast<std::uintmax_t>(kLogBytes));
  EXPECT_EQ(read_file(small).value(), "a line\n");
  dir.bound_logs();
  EXPECT_TRUE(read_file(log).value().ends_with("more\n")) << "once is enough";
}

TEST_F(RunDirTest, ALogThatIsALinkOrAFifoIsLeftAlone) {
  const RunDir dir = created(folder());
  const fs::path target = folder() / "elsewhere";
  std::ofstream{target};
  fs::resize_file(target, 2 * kLogBytes);
  fs::create_symlink(target, dir.log_of("rollout-0"));
  ASSERT_EQ(::mkfifo(dir.log_of("rollout-1").c_str(), 0600), 0);
  fs::create_directory(dir.log_of("rollout-2"));
  dir.bound_logs();
  EXPECT_EQ(fs::file_size(target), static_cast<std::uintmax_t>(2 * kLogBytes));
}

TEST_F(RunDirTest, AFolderThatHoldsOtherThingsIsRefusedByTheNameOfOne) {
  ASSERT_TRUE(write_file_atomically(folder() / "notes.txt", "mine"));
  const Status made = RunDir(folder()).create();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(made.error().context.find("is no folder of a run, but holds notes.txt"),
            std::string::npos)
      << made.error().context;
  EXPECT_FALSE(fs::exists(folder() / "logs"));
}

TEST_F(RunDirTest, AStartThatFailedBeforeItsLogMayBeRepeated) {
  const RunDir dir = created(folder());
  EXPECT_TRUE(dir.create());
  EXPECT_TRUE(dir.lock());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 1\n"));
  EXPECT_TRUE(dir.create());
}

TEST_F(RunDirTest, AFolderThatHoldsARunIsRefusedWithAWayOut) {
  const RunDir dir = created(folder());
  ASSERT_TRUE(write_file_atomically(dir.file("events.log"), ""));
  const Status again = dir.create();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(again.error().context.find("--resume"), std::string::npos) << again.error().context;
}

TEST_F(RunDirTest, AFolderThatCannotBeWrittenIsAnErrorThatNamesIt) {
  ASSERT_TRUE(write_file_atomically(folder() / "file", ""));
  const RunDir dir(folder() / "file" / "run");  // Below a file, where nobody can make a folder.
  const Status made = dir.create();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::Io);
  EXPECT_NE(made.error().context.find(dir.root().string()), std::string::npos);
  EXPECT_FALSE(dir.lock());
  EXPECT_FALSE(dir.checkpoints().begin(PolicyVersion(1)));
  EXPECT_TRUE(dir.checkpoints().find().empty());
}

/// A process that takes the lock of a run and keeps it until it is killed.
class Holder {
 public:
  explicit Holder(const RunDir& dir) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto lock = dir.lock();
      const char got = lock ? 'y' : 'n';
      std::ignore = ::write(pipe[1], &got, 1);
      while (lock)
        ::pause();
      ::_exit(0);
    }
    ::close(pipe[1]);
    EXPECT_EQ(::read(pipe[0], &answer_, 1), 1);
    ::close(pipe[0]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool has_lock() const { return answer_ == 'y'; }

 private:
  pid_t pid_ = 0;
  char answer_ = '?';
};

TEST_F(RunDirTest, IsHeldByOneProcessAndLetGoHoweverItEnds) {
  const RunDir dir = created(folder());
  EXPECT_FALSE(dir.in_progress());
  {
    const Holder holder(dir);
    ASSERT_TRUE(holder.has_lock());
    EXPECT_TRUE(dir.in_progress());
    const auto lock = dir.lock();
    ASSERT_FALSE(lock);
    EXPECT_EQ(lock.error().code, ErrorCode::Unavailable);
    EXPECT_NE(lock.error().context.find("is in progress"), std::string::npos);
  }
  EXPECT_FALSE(dir.in_progress());
  const auto lock = dir.lock();
  EXPECT_TRUE(lock) << "it was killed";
  EXPECT_FALSE(Holder(dir).has_lock());
}

TEST_F(RunDirTest, IsLetGoByItsLastHolder) {
  const RunDir dir = created(folder());
  {
    RunLock first = dir.lock().value();
    const RunLock moved = std::move(first);
    EXPECT_FALSE(Holder(dir).has_lock()) << "moved is held still";
  }
  EXPECT_TRUE(Holder(dir).has_lock());
}

TEST_F(RunDirTest, WhatItIsMadeFromIsCheckedWhenItGoesOn) {
  const RunDir dir = created(folder());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 1\n"));
  ASSERT_TRUE(dir.seal_inputs());
  EXPECT_TRUE(dir.check_inputs());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 2\n"));
  const Status changed = dir.check_inputs();
  ASSERT_FALSE(changed);
  EXPECT_NE(changed.error().context.find(dir.file("config.yaml").string()), std::string::npos);
  fs::remove(dir.file("inputs.manifest"));
  EXPECT_FALSE(dir.check_inputs());
}

TEST_F(RunDirTest, AnotherConfigurationIsSealedAndTheOneBeforeItKept) {
  const RunDir dir = created(folder());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 1\n"));
  ASSERT_TRUE(dir.seal_inputs());
  ASSERT_TRUE(dir.replace_config("seed: 2\n"));
  EXPECT_TRUE(dir.check_inputs());
  EXPECT_EQ(read_file(dir.file("config.yaml")).value(), "seed: 2\n");
  EXPECT_EQ(read_file(dir.file("config.yaml.before-1")).value(), "seed: 1\n");
}

TEST_F(RunDirTest, AReplacedConfigurationIsPutBack) {
  const RunDir dir = created(folder());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 1\n"));
  ASSERT_TRUE(dir.seal_inputs());
  EXPECT_EQ(dir.replaced_configs(), 0U);
  ASSERT_TRUE(dir.replace_config("seed: 2\n"));
  ASSERT_TRUE(dir.replace_config("seed: 3\n"));
  EXPECT_EQ(dir.replaced_configs(), 2U);
  EXPECT_EQ(read_file(dir.replaced_config(1)).value(), "seed: 2\n");
  EXPECT_EQ(read_file(dir.replaced_config(2)).value(), "seed: 1\n");
  ASSERT_TRUE(dir.restore_config(1));
  EXPECT_TRUE(dir.check_inputs());
  EXPECT_EQ(read_file(dir.file("config.yaml")).value(), "seed: 2\n");
  EXPECT_EQ(dir.replaced_configs(), 1U);
}

TEST_F(RunDirTest, AConfigurationThatCannotBeReplacedIsNotCountedAsReplaced) {
  const RunDir dir = created(folder());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 1\n"));
  EXPECT_FALSE(dir.replace_config("seed: 2\n")) << "there is no inputs.manifest";
  EXPECT_EQ(dir.replaced_configs(), 0U);
  EXPECT_EQ(read_file(dir.file("config.yaml")).value(), "seed: 1\n");
}

TEST_F(RunDirTest, SeveralReplacedConfigurationsArePutBackAtOnce) {
  const RunDir dir = created(folder());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 1\n"));
  ASSERT_TRUE(dir.seal_inputs());
  for (const char* next : {"seed: 2\n", "seed: 3\n", "seed: 4\n"})
    ASSERT_TRUE(dir.replace_config(next));
  ASSERT_TRUE(dir.restore_config(2));
  EXPECT_TRUE(dir.check_inputs());
  EXPECT_EQ(read_file(dir.file("config.yaml")).value(), "seed: 2\n");
  EXPECT_EQ(dir.replaced_configs(), 1U);
}

TEST_F(RunDirTest, AChangeOfTheConfigurationThatWasCutOffIsEndedOrUndone) {
  const RunDir dir = created(folder());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 1\n"));
  ASSERT_TRUE(dir.seal_inputs());
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml.next"), "seed: 2\n"));
  ASSERT_TRUE(dir.settle_inputs()) << "cut off before it was sealed";
  EXPECT_TRUE(dir.check_inputs());
  EXPECT_FALSE(fs::exists(dir.file("config.yaml.next")));
  ASSERT_TRUE(dir.replace_config("seed: 2\n"));
  fs::rename(dir.file("config.yaml"), dir.file("config.yaml.next"));
  ASSERT_TRUE(write_file_atomically(dir.file("config.yaml"), "seed: 1\n"));
  EXPECT_FALSE(dir.check_inputs());
  ASSERT_TRUE(dir.settle_inputs()) << "cut off behind its seal";
  EXPECT_TRUE(dir.check_inputs());
  EXPECT_EQ(read_file(dir.file("config.yaml")).value(), "seed: 2\n");
}

}  // namespace
}  // namespace temper::orchestrator
