// The checkpoint of the best version outlives those that are replaced.
#include "orchestrator/run/best_checkpoint.hpp"

#include "core/files.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

class BestCheckpointTest : public ::testing::Test {
 protected:
  BestCheckpointTest() { EXPECT_TRUE(dir().create()); }

  RunDir dir() const { return RunDir(folder_.path()); }
  /// A checkpoint of this version; the one before it is replaced.
  fs::path save(std::uint64_t version) {
    const auto partial = dir().checkpoints().begin(PolicyVersion(version)).value();
    EXPECT_TRUE(write_file_atomically(partial / "weights", std::to_string(version)));
    EXPECT_TRUE(
        dir().checkpoints().complete({version, PolicyVersion(version), "", {}}, {100, 7}, 1));
    return dir().checkpoints().folder_of(PolicyVersion(version));
  }
  static command::Evaluated evaluated(std::uint64_t version, bool best) {
    command::Evaluated e;
    e.version = PolicyVersion(version);
    e.best = best;
    return e;
  }
  std::string kept() const { return read_file(folder_ / "best/weights").value_or("none"); }

  test::TemporaryFolder folder_;
  BestCheckpoint best_{folder_.path()};
};

TEST_F(BestCheckpointTest, IsKeptWhenOthersReplaceIt) {
  ASSERT_TRUE(best_.saved(PolicyVersion(3), save(3), true));
  EXPECT_EQ(kept(), "none") << "nobody has said yet how good it is";
  save(4);
  ASSERT_TRUE(best_.found(evaluated(3, true)));
  EXPECT_EQ(kept(), "3");
  EXPECT_NE(read_file(folder_ / "best/evaluation.json").value().find("\"version\": 3"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(dir().checkpoints().folder_of(PolicyVersion(3))));
  EXPECT_FALSE(fs::exists(folder_ / "best.candidate"));
}

TEST_F(BestCheckpointTest, GivesWayOnlyToABetterOne) {
  ASSERT_TRUE(best_.saved(PolicyVersion(3), save(3), true));
  ASSERT_TRUE(best_.found(evaluated(3, true)));
  ASSERT_TRUE(best_.saved(PolicyVersion(6), save(6), true));
  ASSERT_TRUE(best_.found(evaluated(6, false)));
  EXPECT_EQ(kept(), "3");
  EXPECT_FALSE(fs::exists(folder_ / "best.candidate"));
  ASSERT_TRUE(best_.saved(PolicyVersion(9), save(9), true));
  ASSERT_TRUE(best_.found(evaluated(9, true)));
  EXPECT_EQ(kept(), "9");
  EXPECT_FALSE(fs::exists(folder_ / "best.replaced"));
}

TEST_F(BestCheckpointTest, MayBeSavedOnlyOnceItWasEvaluated) {
  ASSERT_TRUE(best_.found(evaluated(3, true)));
  EXPECT_EQ(kept(), "none");
  ASSERT_TRUE(best_.saved(PolicyVersion(3), save(3), false));
  EXPECT_EQ(kept(), "3");
}

TEST_F(BestCheckpointTest, IsFoundByAProcessThatDidNotSaveIt) {
  save(3);
  ASSERT_TRUE(best_.found(evaluated(3, true)));
  EXPECT_EQ(kept(), "3");
}

TEST_F(BestCheckpointTest, IsNotTheBaseWhichHasNone) {
  ASSERT_TRUE(best_.found(evaluated(0, true)));
  ASSERT_TRUE(best_.saved(PolicyVersion(3), save(3), false));
  EXPECT_EQ(kept(), "none");
}

}  // namespace
}  // namespace temper::orchestrator
