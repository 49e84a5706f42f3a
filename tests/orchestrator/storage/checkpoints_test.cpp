// Checkpoints: there only once they are whole, kept by their record, proved by their manifest.
#include "orchestrator/run/checkpoints.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

class CheckpointsTest : public ::testing::Test {
 protected:
  const Checkpoints& checkpoints() const { return checkpoints_; }
  fs::path folder() const { return folder_.path(); }

  static CheckpointState state_of(std::uint64_t version, std::uint64_t sequence) {
    CheckpointState state{sequence, PolicyVersion(version), "scheduler's", {}};
    state.payloads[GroupId(9)].prompt = "2+2=";
    return state;
  }
  /// As the driver does: the trainer saves into the folder, then it is completed.
  void save(std::uint64_t version, std::uint64_t sequence, std::int32_t keep = 10) const {
    const auto partial = checkpoints_.begin(PolicyVersion(version));
    ASSERT_TRUE(partial);
    ASSERT_TRUE(write_file_atomically(*partial / "trainer", std::to_string(version)));
    ASSERT_TRUE(checkpoints_.complete(state_of(version, sequence), {100, 7}, keep));
  }
  /// Names in the folder, in order.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder()))
      all.push_back(entry.path().filename().string());
    std::ranges::sort(all);
    return all;
  }
  std::optional<PolicyVersion> newest() const {
    const auto all = checkpoints_.find();
    if (all.empty() || !all.front().mark)
      return std::nullopt;
    return all.front().mark->version;
  }

 private:
  test::TemporaryFolder folder_;
  Checkpoints checkpoints_{folder_.path()};
};

using Names = std::vector<std::string>;

TEST_F(CheckpointsTest, OneIsThereOnlyOnceItIsWhole) {
  EXPECT_EQ(newest(), std::nullopt);
  const auto partial = checkpoints().begin(PolicyVersion(4));
  ASSERT_TRUE(partial);
  EXPECT_TRUE(fs::is_empty(*partial));
  EXPECT_EQ(newest(), std::nullopt);
  ASSERT_TRUE(checkpoints().complete(state_of(4, 50), {}, 3));
  EXPECT_EQ(names(), Names{"step-000004"});
  EXPECT_EQ(newest(), PolicyVersion(4));
}

TEST_F(CheckpointsTest, OneComesBackAsItWasSaved) {
  save(4, 50);
  const FoundCheckpoint found = checkpoints().find().at(0);
  EXPECT_EQ(found.mark->log, (LogPosition{100, 7}));
  const Checkpoint loaded = Checkpoints::load(found).value();
  EXPECT_EQ(loaded.folder, folder() / "step-000004");
  EXPECT_EQ(read_file(loaded.folder / "trainer").value(), "4");
  EXPECT_EQ(loaded.state.sequence, 50U);
  EXPECT_EQ(loaded.state.scheduler, "scheduler's");
  EXPECT_EQ(loaded.state.payloads.at(GroupId(9)).prompt, "2+2=");
}

TEST_F(CheckpointsTest, WhatAnInterruptedSaveLeftIsThrownAwayByTheNext) {
  const auto first = checkpoints().begin(PolicyVersion(4));
  ASSERT_TRUE(first);
  ASSERT_TRUE(write_file_atomically(*first / "half", "half"));
  const auto second = checkpoints().begin(PolicyVersion(4));
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  EXPECT_TRUE(fs::is_empty(*second));
}

TEST_F(CheckpointsTest, OneThatNobodyBeganCannotBeCompleted) {
  EXPECT_FALSE(checkpoints().complete(state_of(4, 50), {}, 3));
  EXPECT_TRUE(names().empty());
}

TEST_F(CheckpointsTest, ARunWhoseFolderIsGoneGetsNoNewOne) {
  const Checkpoints gone(folder() / "removed" / "checkpoints");
  EXPECT_FALSE(gone.begin(PolicyVersion(1)));
  EXPECT_FALSE(fs::exists(folder() / "removed"));
}

TEST_F(CheckpointsTest, TheSameVersionSavedAgainIsTheLaterOne) {
  save(4, 50);
  save(4, 70);
  EXPECT_EQ(names().size(), 1U);
  EXPECT_EQ(checkpoints().find().at(0).mark->sequence, 70U);
}

TEST_F(CheckpointsTest, WhileAVersionIsSavedAgainTheEarlierOneCounts) {
  save(4, 50);
  fs::rename(folder() / "step-000004", folder() / "step-000004.replaced");  // and then it died
  EXPECT_EQ(newest(), PolicyVersion(4));
  EXPECT_TRUE(Checkpoints::load(checkpoints().find().at(0)));
  save(4, 70, 1);
  EXPECT_EQ(names(), Names{"step-000004"});
}

TEST_F(CheckpointsTest, AFileOfTheTrainerThatIsNamedAsOursIsRefused) {
  const auto partial = checkpoints().begin(PolicyVersion(4));
  ASSERT_TRUE(partial);
  ASSERT_TRUE(write_file_atomically(*partial / "manifest", "the trainer's"));
  const Status status = checkpoints().complete(state_of(4, 40), {100, 7}, 10);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("saved a file named manifest"), std::string::npos)
      << status.error().context;
  EXPECT_EQ(newest(), std::nullopt);
}

TEST_F(CheckpointsTest, TheNewestAreKept) {
  for (std::uint64_t v = 1; v <= 5; ++v)
    save(v, 10 * v, 2);
  EXPECT_EQ(names(), (Names{"step-000004", "step-000005"}));
}

TEST_F(CheckpointsTest, TheNewestAreThoseOfTheLatestRecordsWhateverTheirVersion) {
  save(999'999, 10, 2);
  save(1'000'000, 20, 2);
  save(3, 30, 2);  // the run went back
  save(4, 40, 2);
  EXPECT_EQ(names(), (Names{"step-000003", "step-000004"}));
}

TEST_F(CheckpointsTest, ANewOneIsNeverTheOneThatIsRemoved) {
  save(130, 900, 2);
  save(140, 1000, 2);
  save(10, 200, 2);  // of a log that was cut: newer ones of another history lie about
  save(20, 300, 2);
  save(30, 400, 2);
  EXPECT_EQ(names(), (Names{"step-000020", "step-000030", "step-000130", "step-000140"}));
}

TEST_F(CheckpointsTest, OneHalfRemovedDoesNotCount) {
  save(4, 50);
  save(5, 60);
  fs::rename(folder() / "step-000004", folder() / "step-000004.partial");
  EXPECT_EQ(checkpoints().find().size(), 1U);
}

TEST_F(CheckpointsTest, OneWithAFileThatIsNotWhatWasWrittenIsDamagedByName) {
  save(4, 50);
  for (const char* name : {"trainer", "orchestrator.msgpack"}) {
    const fs::path file = folder() / "step-000004" / name;
    const std::string before = read_file(file).value();
    for (const std::string& now : {before + "x", std::string(before.size(), 'x'), std::string()}) {
      ASSERT_TRUE(write_file_atomically(file, now));
      const auto loaded = Checkpoints::load(checkpoints().find().at(0));
      ASSERT_FALSE(loaded);
      EXPECT_NE(loaded.error().context.find(file.string()), std::string::npos);
    }
    fs::remove(file);
    EXPECT_FALSE(Checkpoints::load(checkpoints().find().at(0)));
    ASSERT_TRUE(write_file_atomically(file, before));
  }
  EXPECT_TRUE(Checkpoints::load(checkpoints().find().at(0)));
}

TEST_F(CheckpointsTest, OneWithoutAManifestIsFoundAndDamaged) {
  save(4, 50);
  fs::create_directory(folder() / "step-000005");  // what an interrupted removal once left
  const auto all = checkpoints().find();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].mark->version, PolicyVersion(4)) << "those with a mark come first";
  EXPECT_FALSE(all[1].mark);
  EXPECT_FALSE(Checkpoints::load(all[1]));
}

TEST_F(CheckpointsTest, WhatIsSetAsideIsKeptAndNoLongerCounts) {
  for (int i = 1; i <= 2; ++i) {
    save(4, 50);
    const auto aside =
        checkpoints().set_aside(folder() / "step-000004", Checkpoints::Defect::Damaged);
    ASSERT_TRUE(aside);
    EXPECT_EQ(aside->filename(), "step-000004.damaged-" + std::to_string(i));
    EXPECT_TRUE(fs::exists(*aside / "trainer"));
  }
  EXPECT_TRUE(checkpoints().find().empty());
}

TEST_F(CheckpointsTest, OtherFilesBesideThemAreLeftAlone) {
  ASSERT_TRUE(make_folder(folder() / "mine"));
  for (std::uint64_t v = 1; v <= 3; ++v)
    save(v, v, 1);
  EXPECT_EQ(names(), (Names{"mine", "step-000003"}));
}

}  // namespace
}  // namespace temper::orchestrator
