// What is on the disk goes bad: bits that flip, files that are lost, a log that is shorter than its
// checkpoints, a folder that is removed. Nothing is lost silently, and a run goes on only from what
// is whole.
#include "core/files.hpp"
#include "tests/system/harness.hpp"

#include <fmt/format.h>
#include <signal.h>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;

class StoredRun : public SystemTest {
 protected:
  /// Checkpoints 5 and 10 are whole.
  void run_and_kill() {
    run({kSlow});
    await([](const Records& r) { return last_version(r) >= 13; });
    current().signal(SIGKILL);
    current().wait();
    await_no_processes();
  }
  void flip(const fs::path& file, std::uintmax_t byte) {
    std::string bytes = read_file(file).value();
    bytes.at(byte) = static_cast<char>(bytes[byte] ^ 4);
    ASSERT_TRUE(write_file_atomically(file, bytes));
  }
  fs::path log() const { return run_dir() / "events.log"; }
  fs::path checkpoint(std::uint64_t version) const {
    return run_dir() / fmt::format("checkpoints/step-{:06}", version);
  }
  Ended on_run(const std::string& command) { return temper({command, run_dir().string()}); }
};

TEST_F(StoredRun, AFlippedBitInTheLogIsSaidByAllRefusedByAResumeAndTurnedBack) {
  run_and_kill();
  const std::string before = read_file(log()).value();
  flip(log(), before.size() / 10);
  const std::string damaged = read_file(log()).value();
  for (const char* command : {"audit", "replay", "report", "events"}) {
    const Ended ended = on_run(command);
    EXPECT_EQ(ended.status, 3) << command;
    EXPECT_NE(ended.output.find("damaged at byte"), std::string::npos) << ended.output;
  }
  const Ended refused = resume().wait();
  EXPECT_EQ(refused.status, 3);
  EXPECT_NE(refused.output.find("damaged at byte"), std::string::npos) << refused.output;
  EXPECT_EQ(read_file(log()).value(), damaged);
  EXPECT_TRUE(fs::exists(checkpoint(10)));
  EXPECT_EQ(on_run("fsck").status, 4);
  const Ended repaired = temper({"fsck", "--repair", run_dir().string()});
  EXPECT_EQ(repaired.status, 0) << repaired.output;
  EXPECT_EQ(read_file(log()).value(), before);
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  expect_whole_run(24);
}

TEST_F(StoredRun, ALogThatEndsBeforeItsCheckpointsDoesNotBeginAnew) {
  run_and_kill();
  fs::resize_file(log(), fs::file_size(log()) / 10);
  const std::string cut = read_file(log()).value();
  const Ended refused = resume().wait();
  EXPECT_EQ(refused.status, 3);
  EXPECT_NE(refused.output.find("no checkpoint in"), std::string::npos) << refused.output;
  EXPECT_EQ(read_file(log()).value(), cut);
  EXPECT_TRUE(fs::exists(checkpoint(5)) && fs::exists(checkpoint(10)));
  EXPECT_EQ(temper({"fsck", "--repair", run_dir().string()}).status, 0);
  EXPECT_TRUE(fs::exists(checkpoint(10).string() + ".void-1"));
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_TRUE(fs::exists(checkpoint(20))) << "new checkpoints stay";
  expect_whole_run(24);
}

TEST_F(StoredRun, ADamagedNewestCheckpointIsPassedOver) {
  run_and_kill();
  flip(checkpoint(10) / "orchestrator.msgpack", 200);
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("step-000010 is skipped"), std::string::npos) << resumed.output;
  EXPECT_NE(resumed.output.find("resumes from checkpoint step-000005"), std::string::npos);
  expect_whole_run(24);
}

TEST_F(StoredRun, ATrainerFileThatGoesBadDuringTheRunCostsOneCheckpointAndNotTheRun) {
  run({"synthetic.step_time=20ms", "checkpoint.every=8"});
  await([&](const Records&) { return fs::exists(checkpoint(16)); });
  flip(checkpoint(16) / "synthetic.json", 3);
  const pid_t trainer = await_worker("trainer");
  ASSERT_GT(trainer, 0) << "0 would be everyone of this process group";
  ASSERT_EQ(::kill(trainer, SIGKILL), 0);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(fs::exists(checkpoint(16).string() + ".damaged-1"));
  EXPECT_EQ(count_events<event::Resumed>(records()), 1U) << "it is tried once";
  expect_whole_run(24);
}

TEST_F(StoredRun, ARunWhoseFolderIsRemovedEndsWithAnError) {
  run({kSlow, "steps=5000", "checkpoint.every=0"});
  await_version(4);
  for (std::error_code busy; fs::exists(run_dir());)
    fs::remove_all(run_dir(), busy);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("was deleted"), std::string::npos) << ended.output;
  EXPECT_FALSE(fs::exists(run_dir() / "checkpoints"));
}

TEST_F(StoredRun, ARunThatEndedIsWholeAndAFlippedSummaryIsFoundAndMadeAnew) {
  run();
  EXPECT_EQ(current().wait().status, 0);
  EXPECT_EQ(on_run("fsck").status, 0);
  const std::string before = read_file(run_dir() / "summary.json").value();
  flip(run_dir() / "summary.json", 40);
  flip(run_dir() / "summary.json", 41);
  EXPECT_EQ(on_run("audit").status, 3);
  EXPECT_EQ(on_run("fsck").status, 3);
  EXPECT_EQ(temper({"fsck", "--repair", run_dir().string()}).status, 0);
  EXPECT_EQ(read_file(run_dir() / "summary.json").value(), before);
  expect_whole_run(24);
}

}  // namespace
}  // namespace temper::test
