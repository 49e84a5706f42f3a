#include "core/home_path.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

TEST(HomePath, ExpandsALeadingTildeOrHome) {
  const std::vector<std::pair<const char*, const char*>> cases{{"~", "/home/me"},
                                                               {"~/", "/home/me/"},
                                                               {"~/runs/x", "/home/me/runs/x"},
                                                               {"$HOME", "/home/me"},
                                                               {"$HOME/runs", "/home/me/runs"},
                                                               {"${HOME}", "/home/me"},
                                                               {"${HOME}/a b", "/home/me/a b"}};
  for (const auto& [path, expected] : cases) {
    for (const char* home : {"/home/me", "/home/me/"})
      EXPECT_EQ(expand_home(path, home).value(), expected) << path;
  }
  EXPECT_EQ(expand_home("~/a", "/").value(), "/a");
  EXPECT_EQ(expand_home("~", "/").value(), "/");
}

TEST(HomePath, KeepsOtherPaths) {
  for (const char* path : {"",
                           "runs/x",
                           "/abs/x",
                           "./~/x",
                           "runs/~/x",
                           "runs/x~",
                           "~backup.jsonl",
                           "cost$",
                           "a$b.jsonl",
                           "10$/x",
                           "$5/x",
                           "%HOME%/x",
                           "{HOME}/x",
                           "cm384"})
    EXPECT_EQ(expand_home(path, "/home/me").value(), path);
}

TEST(HomePath, RejectsOtherShellExpansions) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"${USER}/x", "${USER}"},
      {"${oc.env:HOME}/x", "${oc.env:HOME}"},
      {"${HOME:-/x}/y", "${HOME:-/x}"},
      {"runs/${HOME}", "${HOME}"},
      {"~/${USER}", "${USER}"},
      {"${HOME", "${HOME"},
      {"$SCRATCH/x", "$SCRATCH"},
      {"$SCRATCH", "$SCRATCH"},
      {"/data/$USER/x", "$USER"},
      {"runs/$HOME", "$HOME"},
      {"$(pwd)/x", "$(pwd)"},
      {"~alice/x", "~alice"}};
  for (const auto& [path, found] : cases) {
    const auto expanded = expand_home(path, "/home/me");
    ASSERT_FALSE(expanded) << path << " is " << *expanded;
    EXPECT_EQ(expanded.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(expanded.error().context.find(std::string("`") + found + "`"), std::string::npos)
        << expanded.error().context;
  }
}

TEST(HomePath, RejectsPathsThatNeedAMissingHome) {
  for (const char* home : {"", "relative", "~"}) {
    EXPECT_FALSE(expand_home("~/x", home)) << home;
    EXPECT_FALSE(expand_home("${HOME}", home)) << home;
    EXPECT_EQ(expand_home("runs/x", home).value(), "runs/x");
  }
}

}  // namespace
}  // namespace temper
