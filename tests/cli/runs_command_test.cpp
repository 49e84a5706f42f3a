// `temper runs` on all kinds of subfolders, including those without a readable run.
#include "cli/run/runs_command.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
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

/// Lists the folder as nobody, who has no right to what others closed; the status is that of runs.
[[noreturn]] void list_as_nobody(const fs::path& folder) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0))
    std::_Exit(99);
  const int code = run_runs({.folder = folder}, std::cerr, std::cerr);
  std::_Exit(code);
}

TEST_F(Runs, FoldersThatMayNotBeEnteredAreNoReasonToEnd) {
  put("a/config.yaml");
  put("a/checkpoints/step-000010/manifest");
  put("closed/config.yaml");
  for (const fs::path& open : {folder_.path(), folder_.path().parent_path()})
    fs::permissions(open, fs::perms(0755));
  fs::permissions(folder_ / "a/checkpoints", fs::perms::none);
  fs::permissions(folder_ / "closed", fs::perms::none);
  EXPECT_EXIT(list_as_nobody(folder_.path()),
              testing::ExitedWithCode(0),
              "a +not begun.*\n.*closed +broken|a +not begun");
  fs::permissions(folder_ / "a/checkpoints", fs::perms::owner_all);
  fs::permissions(folder_ / "closed", fs::perms::owner_all);
}

}  // namespace
}  // namespace temper::cli
