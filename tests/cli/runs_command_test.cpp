// `temper runs`: what lies in the folder, also where it is no run that can be shown.
#include "cli/run/runs_command.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

class Runs : public testing::Test {
 protected:
  std::string listed() {
    std::ostringstream out, err;
    EXPECT_EQ(run_runs({.folder = folder_.path()}, out, err), 0) << err.str();
    return out.str();
  }
  void put(const std::string& file) {
    ASSERT_TRUE(make_folder((folder_ / file).parent_path()));
    ASSERT_TRUE(write_file_atomically(folder_ / file, "x\n"));
  }
  test::TemporaryFolder folder_;
};

TEST_F(Runs, AFolderWithoutAnySaysSo) {
  EXPECT_EQ(listed(), "no runs\n");
}

TEST_F(Runs, FoldersOfRunsThatNeverBeganOrAreBrokenAreShownAsSuch) {
  put("a/config.yaml");
  put("b/events.log");
  put("notes/text.md");
  fs::create_directories(folder_ / "c");
  const std::string text = listed();
  EXPECT_NE(text.find("a     not begun"), std::string::npos) << text;
  EXPECT_NE(text.find("b     broken"), std::string::npos) << text;
  EXPECT_NE(text.find("c     empty"), std::string::npos) << text;
  EXPECT_EQ(text.find("notes"), std::string::npos) << text;
}

TEST_F(Runs, WhatIsBrokenCanBeRemovedAndWhatIsSomethingElseCannot) {
  put("b/events.log");
  put("notes/text.md");
  std::ostringstream out, err;
  EXPECT_EQ(run_runs({.folder = folder_.path(), .remove = {"b"}}, out, err), 0) << err.str();
  EXPECT_FALSE(fs::exists(folder_ / "b"));
  EXPECT_EQ(run_runs({.folder = folder_.path(), .remove = {"notes"}}, out, err), 2);
  EXPECT_TRUE(fs::exists(folder_ / "notes/text.md"));
}

}  // namespace
}  // namespace temper::cli
