// `temper` in a build with -DTEMPER_LAB=OFF. This program links no_laboratory.cpp.
#include "cli/command/exit_code.hpp"
#include "cli/laboratory/laboratory.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace temper::cli {
namespace {

struct Ended {
  int code = 0;
  std::string out, err;
};

Ended temper(std::vector<std::string> words) {
  words.insert(words.begin(), "temper");
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code =
      run_command_line(static_cast<int>(words.size()), argv.data(), laboratory_commands());
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(NoLaboratory, EachCommandSaysHowToBuildIt) {
  ASSERT_EQ(laboratory_commands().size(), study_commands().size());
  for (const Command& command : study_commands()) {
    const Ended ended = temper({command.name, "configs/quickstart.yaml", "--some-flag"});
    EXPECT_EQ(ended.code, kBadInput);
    EXPECT_EQ(ended.err,
              "temper: `" + std::string(command.name) +
                  "` belongs to the laboratory, which this build does not have; rebuild with "
                  "-DTEMPER_LAB=ON\n");
  }
  EXPECT_NE(temper({"predict"}).err.find("`predict` belongs"), std::string::npos) << "an alias";
}

TEST(NoLaboratory, HelpListsNoCommandOfIt) {
  const Ended ended = temper({"--help"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.out.find("Exit codes:"), std::string::npos) << ended.out;
  for (const Command& command : study_commands())
    EXPECT_EQ(ended.out.find("\n  " + std::string(command.name) + " "), std::string::npos)
        << ended.out;
  EXPECT_EQ(ended.out.find("Predict and compare"), std::string::npos) << ended.out;
}

TEST(NoLaboratory, TheNoteCountsTheConstantsThatWereNotMeasured) {
  sim_hw::HardwareSpec measured, mine;
  measured.name = "measured";
  measured.fits = {{"operators", "h.csv, gemm", 9, 0.1, 0.2},
                   {"collectives", "h.csv, all_gather", 9, 0.1, 0.2}};
  mine.name = "mine";
  mine.fits = {{"operators", "h.csv, gemm", 9, 0.1, 0.2},
               {"collectives.p2p, collectives.combine", "h.csv, p2p", 9, 0.1, 0.2}};
  const std::array<const sim_hw::HardwareSpec*, 3> hardware{&measured, &mine, &mine};
  EXPECT_EQ(simulated_run_note(hardware),
            "5 constants not measured on mine; a build with -DTEMPER_LAB=ON estimates the error\n");
  EXPECT_EQ(simulated_run_note(std::span(hardware).first(1)), "");
}

}  // namespace
}  // namespace temper::cli
