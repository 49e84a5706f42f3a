#include "cli/run/run_command.hpp"

#include "cli/command/flags.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace temper::cli {
namespace {

/// What is said of `temper run` with these words, which cannot run.
std::string said(const std::string& words) {
  CLI::App app;
  Flags flags(app);
  const Handler run = run_command(flags);
  app.parse(words);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(), 2);
  return ::testing::internal::GetCapturedStderr();
}

TEST(RunCommand, TheConfigurationMayStandBehindADashboardWithoutAnAddress) {
  for (const char* words : {"--dashboard none.yaml",
                            "none.yaml --dashboard",
                            "--dashboard 8080 none.yaml",
                            "none.yaml --dashboard 127.0.0.1:8080"})
    EXPECT_NE(said(words).find("none.yaml"), std::string::npos) << words << ": " << said(words);
  EXPECT_NE(said("--dashboard 8080").find("no configuration"), std::string::npos);
}

}  // namespace
}  // namespace temper::cli
