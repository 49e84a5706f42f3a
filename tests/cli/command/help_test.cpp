#include "cli/command/help.hpp"

#include "core/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHelp =
    "Usage: temper check [OPTIONS] config\n"
    "\n"
    "Options:\n"
    "  -f,--file TEXT ...          Another YAML, laid over the first; may be repeated, as often as "
    "there are files\n"
    "\n"
    "Examples:\n"
    "  temper check configs/quickstart.yaml --set rollout.replicas=2 --set placement.cards=4 -f "
    "a\n";

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    out.push_back(line);
  return out;
}

TEST(Help, IsBrokenAtTheWidthOfTheTerminalBelowItsDescription) {
  for (const std::size_t width : {40U, 60U, 80U}) {
    for (const std::string& line : lines(wrapped_help(kHelp, width))) {
      if (!line.starts_with("  temper ")) {
        EXPECT_LE(line.size(), width) << line;
      }
    }
  }
  const auto at_80 = lines(wrapped_help(kHelp, 80));
  EXPECT_EQ(at_80[4], std::string(30, ' ') + "repeated, as often as there are files");
}

TEST(Help, LosesNoWordAndLeavesExamplesWhole) {
  const auto words = [](const std::string& text) {
    std::istringstream stream(text);
    return std::vector<std::string>(std::istream_iterator<std::string>(stream), {});
  };
  const std::string narrow = wrapped_help(kHelp, 40);
  EXPECT_EQ(words(narrow), words(std::string(kHelp)));
  EXPECT_NE(narrow.find("--set placement.cards=4 -f a\n"), std::string::npos);
  EXPECT_EQ(wrapped_help(kHelp, 0), kHelp) << "width 0 breaks no line";
}

TEST(Help, NamesEveryVariableThatAProgramReads) {
  const std::set<std::string> everywhere{"HOME", "PATH", "TERM"};
  const std::regex read(R"re(getenv\("([A-Z_]+)"\))re");
  std::set<std::string> found;
  for (const char* floor :
       {"core", "sim_hw", "actors", "rollout", "trainer", "orchestrator", "study", "cli"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(TEMPER_SOURCE_DIR) / floor)) {
      if (entry.path().extension() != ".cpp")
        continue;
      const std::string text = read_file(entry.path()).value();
      for (std::sregex_iterator it(text.begin(), text.end(), read), end; it != end; ++it)
        found.insert((*it)[1]);
    }
  }
  EXPECT_TRUE(found.contains("TEMPER_CACHE"));
  for (const std::string& variable : found) {
    if (!everywhere.contains(variable)) {
      EXPECT_NE(variables_text().find(variable), std::string::npos) << variable;
    }
  }
}

}  // namespace
}  // namespace temper::cli
