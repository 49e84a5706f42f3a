// Values that look as if a flag or an argument were not given.
#include "cli/command/flags.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace temper::cli {
namespace {

/// The error of a command with these flags; empty if there is none.
std::string error_of(std::vector<std::string> words) {
  CLI::App app;
  Flags flags(app);
  int threads = 0;
  std::uint64_t steps = 0;
  std::string out, run;
  flags.count("--threads", threads, "");
  flags.count("--steps", steps, "");
  flags.text("--out", out, "");
  flags.argument("run", run, "", Need::Optional);
  std::ranges::reverse(words);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

TEST(Flags, RejectACountOfNone) {
  EXPECT_EQ(error_of({"--threads", "1", "--steps", "20"}), "");
  EXPECT_EQ(error_of({"--steps", "0"}),
            "--steps: expected a number from 1, found 0; leave the flag out for its default");
  EXPECT_EQ(error_of({"--threads=0"}),
            "--threads: expected a number from 1, found 0; leave the flag out for its default");
  EXPECT_EQ(error_of({"--threads", "-2"}),
            "--threads: expected a number from 1, found -2; leave the flag out for its default");
}

TEST(Flags, RejectAnEmptyText) {
  EXPECT_EQ(error_of({"--out", "runs"}), "");
  EXPECT_EQ(error_of({"--out", ""}),
            "--out: expected a value, found an empty one; leave the flag out for its default");
  EXPECT_EQ(error_of({"runs/first"}), "");
  EXPECT_EQ(error_of({""}), "run: expected a name or a path, found an empty text");
}

}  // namespace
}  // namespace temper::cli
