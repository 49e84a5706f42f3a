#include "cli/run/run_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/command/flags.hpp"
#include "core/files.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "tests/support/temporary_folder.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace temper::cli {
namespace {

/// What is said of `temper run` with these words, which cannot run.
std::string said(const std::string& words, int code = kBadInput) {
  CLI::App app;
  Flags flags(app);
  const Handler run = run_command(flags);
  app.parse(words);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(), code);
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

TEST(RunCommand, ABranchOfWhatIsNotThereLeavesNoFolder) {
  const test::TemporaryFolder folder;
  const std::filesystem::path first = folder / "first", second = folder / "second";
  ASSERT_TRUE(make_folder(first));
  ASSERT_TRUE(write_file_atomically(first / "config.yaml", "name: first\n"));
  const std::string line = fmt::format("{} --from {}@80 --set run_dir={}",
                                       (first / "config.yaml").string(),
                                       first.string(),
                                       second.string());
  EXPECT_NE(said(line).find("it has no base/"), std::string::npos) << said(line);
  EXPECT_FALSE(std::filesystem::exists(second));
}

TEST(RunCommand, AResumeNamesADamagedConfigurationAndTheNextStep) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "config.yaml";
  const std::string whole = "name: first\nsteps: 20\n",
                    words = "--resume " + folder.path().string();
  ASSERT_TRUE(write_file_atomically(file, whole));
  ASSERT_TRUE(orchestrator::RunDir(folder.path()).seal_inputs());
  for (const std::string text : {"", "name: first\nste", "nmae: first\nsteps: 20\n"}) {
    ASSERT_TRUE(write_file_atomically(file, text));
    const std::string told = said(words, kFound);
    EXPECT_NE(told.find(file.string() + " is damaged: "), std::string::npos) << told;
    EXPECT_NE(told.find("restore the file"), std::string::npos) << told;
  }
  ASSERT_TRUE(write_file_atomically(file, whole));
  EXPECT_EQ(said(words + " --set stpes=3").find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace temper::cli
