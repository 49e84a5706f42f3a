// RunDir: a folder that is new, one that holds a run, one that cannot be written; who holds it; and
// which checkpoints it keeps and finds again.
#include "orchestrator/run/run_dir.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

class RunDirTest : public ::testing::Test {
 protected:
  const fs::path& folder() const { return folder_.path(); }

  static CheckpointState state_of(std::uint64_t version, std::uint64_t sequence) {
    CheckpointState state{sequence, PolicyVersion(version), "scheduler's", {}};
    state.payloads[GroupId(9)].prompt = "2+2=";
    return state;
  }
  /// A checkpoint as the driver makes it: the trainer saves into the folder, then it is completed.
  static void save(const RunDir& dir,
                   std::uint64_t version,
                   std::uint64_t sequence,
                   int keep = 10) {
    const auto partial = dir.begin_checkpoint(PolicyVersion(version));
    ASSERT_TRUE(partial);
    ASSERT_TRUE(write_file_atomically(*partial / "trainer", std::to_string(version)));
    ASSERT_TRUE(dir.complete_checkpoint(state_of(version, sequence), keep));
  }
  /// Names in the checkpoints' folder, in order.
  static std::vector<std::string> saved(const RunDir& dir) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir.file("checkpoints")))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::optional<PolicyVersion> newest(const RunDir& dir, std::uint64_t last_sequence) {
    const auto found = dir.newest_checkpoint(last_sequence);
    EXPECT_TRUE(found);
    if (!found || !*found)
      return std::nullopt;
    return (*found)->state.version;
  }

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

TEST_F(RunDirTest, AFolderWithoutARunMayHoldOtherThings) {
  ASSERT_TRUE(write_file_atomically(folder() / "notes.txt", "mine"));
  const RunDir dir = created(folder());
  EXPECT_TRUE(dir.create()) << "a start that failed before its log may be repeated";
  EXPECT_EQ(read_file(folder() / "notes.txt").value(), "mine");
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
  EXPECT_FALSE(dir.begin_checkpoint(PolicyVersion(1)));
  EXPECT_EQ(newest(dir, 100), std::nullopt);
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
  {
    const Holder holder(dir);
    ASSERT_TRUE(holder.has_lock());
    const auto lock = dir.lock();
    ASSERT_FALSE(lock);
    EXPECT_EQ(lock.error().code, ErrorCode::Unavailable);
    EXPECT_NE(lock.error().context.find("is going on"), std::string::npos);
  }
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

TEST_F(RunDirTest, ACheckpointIsThereOnlyOnceItIsWhole) {
  const RunDir dir = created(folder());
  EXPECT_EQ(newest(dir, 100), std::nullopt);
  const auto partial = dir.begin_checkpoint(PolicyVersion(4));
  ASSERT_TRUE(partial);
  EXPECT_TRUE(fs::is_empty(*partial));
  EXPECT_EQ(newest(dir, 100), std::nullopt);
  ASSERT_TRUE(dir.complete_checkpoint(state_of(4, 50), 3));
  EXPECT_EQ(saved(dir), std::vector<std::string>{"step-000004"});
  EXPECT_EQ(newest(dir, 100), PolicyVersion(4));
}

TEST_F(RunDirTest, ACheckpointComesBackAsItWasSaved) {
  const RunDir dir = created(folder());
  save(dir, 4, 50);
  const Checkpoint found = dir.newest_checkpoint(50).value().value();
  EXPECT_EQ(found.folder, dir.file("checkpoints") / "step-000004");
  EXPECT_EQ(read_file(found.folder / "trainer").value(), "4");
  EXPECT_EQ(found.state.sequence, 50U);
  EXPECT_EQ(found.state.scheduler, "scheduler's");
  EXPECT_EQ(found.state.payloads.at(GroupId(9)).prompt, "2+2=");
}

TEST_F(RunDirTest, WhatAnInterruptedSaveLeftIsThrownAwayByTheNext) {
  const RunDir dir = created(folder());
  const auto first = dir.begin_checkpoint(PolicyVersion(4));
  ASSERT_TRUE(first);
  ASSERT_TRUE(write_file_atomically(*first / "half", "half"));
  const auto second = dir.begin_checkpoint(PolicyVersion(4));
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  EXPECT_TRUE(fs::is_empty(*second));
}

TEST_F(RunDirTest, ACheckpointThatNobodyBeganCannotBeCompleted) {
  const RunDir dir = created(folder());
  EXPECT_FALSE(dir.complete_checkpoint(state_of(4, 50), 3));
  EXPECT_TRUE(saved(dir).empty());
}

TEST_F(RunDirTest, TheSameVersionSavedAgainIsTheLaterOne) {
  const RunDir dir = created(folder());
  save(dir, 4, 50);
  save(dir, 4, 70);
  EXPECT_EQ(saved(dir).size(), 1U);
  EXPECT_EQ(dir.newest_checkpoint(100).value()->state.sequence, 70U);
}

TEST_F(RunDirTest, TheNewestAreKept) {
  const RunDir dir = created(folder());
  for (std::uint64_t v = 1; v <= 5; ++v)
    save(dir, v, 10 * v, 2);
  EXPECT_EQ(saved(dir), (std::vector<std::string>{"step-000004", "step-000005"}));
}

TEST_F(RunDirTest, TheNewestAreKeptBeyondAMillionStepsToo) {
  const RunDir dir = created(folder());
  for (const std::uint64_t v : {999'998U, 999'999U, 1'000'000U})
    save(dir, v, v, 2);
  EXPECT_EQ(saved(dir), (std::vector<std::string>{"step-1000000", "step-999999"}));
  EXPECT_EQ(newest(dir, 2'000'000), PolicyVersion(1'000'000));
}

TEST_F(RunDirTest, ACheckpointThatTheLogDoesNotReachIsPassedOver) {
  const RunDir dir = created(folder());
  save(dir, 4, 50);
  save(dir, 8, 90);
  EXPECT_EQ(newest(dir, 90), PolicyVersion(8));
  EXPECT_EQ(newest(dir, 89), PolicyVersion(4));
  EXPECT_EQ(newest(dir, 49), std::nullopt);
}

TEST_F(RunDirTest, ACorruptCheckpointIsAnErrorThatNamesItsFile) {
  const RunDir dir = created(folder());
  save(dir, 4, 50);
  save(dir, 8, 90);
  const fs::path state = dir.file("checkpoints") / "step-000008" / "orchestrator.msgpack";
  ASSERT_TRUE(write_file_atomically(state, "not msgpack"));
  const auto found = dir.newest_checkpoint(100);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().context.find(state.string()), std::string::npos);
  fs::remove(state);
  const auto without = dir.newest_checkpoint(100);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().context.find(state.string()), std::string::npos);
}

TEST_F(RunDirTest, OtherFilesBesideTheCheckpointsAreLeftAlone) {
  const RunDir dir = created(folder());
  ASSERT_TRUE(make_folder(dir.file("checkpoints") / "mine"));
  for (std::uint64_t v = 1; v <= 3; ++v)
    save(dir, v, v, 1);
  EXPECT_EQ(saved(dir), (std::vector<std::string>{"mine", "step-000003"}));
}

}  // namespace
}  // namespace temper::orchestrator
