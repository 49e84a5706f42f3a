// The rules of walls.hpp hold in this repository, and each of them is broken by a made-up tree that
// breaks it. TEMPER_UPDATE_GOLDEN=1 rewrites the table of folders in docs/reference/modules.md.
#include "tests/structure/walls.hpp"

#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>

namespace temper::test {
namespace {

using Sentences = std::vector<std::string>;

TEST(Walls, HoldInThisRepository) {
  const Sentences broken = broken_rules(read_source_tree(TEMPER_SOURCE_DIR), Limits{});
  EXPECT_TRUE(broken.empty()) << fmt::format("{}", fmt::join(broken, "\n"));
}

TEST(Walls, AreInTheDocsAsTheyAre) {
  const std::string path = std::string(TEMPER_SOURCE_DIR) + "/docs/reference/modules.md";
  const std::string table = write_folder_table(read_source_tree(TEMPER_SOURCE_DIR));
  const std::string text = read_file(path).value();
  const std::string begin = "<!-- folders -->\n", end = "<!-- end of folders -->";
  ASSERT_NE(text.find(begin), std::string::npos);
  const auto from = text.find(begin) + begin.size(), to = text.find(end);
  ASSERT_NE(to, std::string::npos);
  ASSERT_LE(from, to);
  if (const char* update = std::getenv("TEMPER_UPDATE_GOLDEN"); update && *update == '1') {
    ASSERT_TRUE(write_file_atomically(path, text.substr(0, from) + table + text.substr(to)));
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), table)
      << path << " is stale; TEMPER_UPDATE_GOLDEN=1 rewrites it";
}

/// A tree of two folders that breaks no rule, to which a test adds what does.
class MadeUpTree : public testing::Test {
 protected:
  MadeUpTree() {
    folder("core", "HEADERS a.hpp");
    write("core/a.hpp", "#pragma once\n");
    folder("sim_hw/cards", "SOURCES b.cpp HEADERS b.hpp\n  DEPS core");
    write("sim_hw/cards/b.hpp", "#include \"core/a.hpp\"\n");
    write("sim_hw/cards/b.cpp", "#include \"sim_hw/cards/b.hpp\"\n");
  }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_.path() / path).parent_path());
    std::ofstream(root_.path() / path) << text;
  }

  /// A folder with a README and a module of these arguments.
  void folder(const std::string& name, const std::string& arguments) {
    write(name + "/README.md", "What it is for.\n");
    write(name + "/CMakeLists.txt", fmt::format("temper_module({}\n  {})\n", name, arguments));
  }

  const std::filesystem::path& root() const { return root_.path(); }

  Sentences broken(Limits limits = {.folder_share = 1.0}) const {
    return broken_rules(read_source_tree(root_.path()), limits);
  }

 private:
  TemporaryFolder root_;
};

TEST_F(MadeUpTree, BreaksNoRuleAsItIs) {
  EXPECT_EQ(broken(), Sentences{});
}

TEST_F(MadeUpTree, BreaksOneByACircle) {
  folder("sim_hw", "HEADERS c.hpp DEPS sim_hw/cards");
  write("sim_hw/c.hpp", "#include \"sim_hw/cards/b.hpp\"\n");
  folder("sim_hw/cards", "SOURCES b.cpp HEADERS b.hpp DEPS core sim_hw");
  write("sim_hw/cards/b.cpp", "\n\n#include \"sim_hw/c.hpp\"\n");
  EXPECT_EQ(broken(),
            (Sentences{"sim_hw -> sim_hw/cards -> sim_hw is a circle:\n"
                       "    sim_hw/c.hpp:1\n    sim_hw/cards/b.cpp:3"}));
}

TEST_F(MadeUpTree, BreaksOneByAnIncludeThatCMakeDoesNotName) {
  folder("sim_hw/cards", "SOURCES b.cpp HEADERS b.hpp");
  EXPECT_EQ(broken(),
            (Sentences{"sim_hw/cards/b.hpp:1: sim_hw/cards includes core, which "
                       "sim_hw/cards/CMakeLists.txt does not name"}));
}

TEST_F(MadeUpTree, MayNameWhatItIncludesByItsTarget) {
  folder("sim_hw/cards", "SOURCES b.cpp HEADERS b.hpp)\ntarget_link_libraries(x temper::core");
  EXPECT_EQ(broken(), Sentences{});
}

TEST_F(MadeUpTree, BreaksOneByADependencyThatNothingIncludes) {
  folder("actors", "HEADERS d.hpp\n  DEPS core\n    sim_hw/cards # not true");
  write("actors/d.hpp", "#include \"core/a.hpp\"\n");
  EXPECT_EQ(broken(),
            (Sentences{"actors/CMakeLists.txt:4: names sim_hw/cards, which actors does not "
                       "include"}));
}

TEST_F(MadeUpTree, BreaksOneByIncludingAFloorThatIsNotBelow) {
  folder("trainer", "HEADERS e.hpp");
  write("trainer/e.hpp", "#pragma once\n");
  folder("rollout", "HEADERS f.hpp DEPS trainer");
  write("rollout/f.hpp", "#include \"trainer/e.hpp\"\n");
  EXPECT_EQ(broken(),
            (Sentences{"rollout/f.hpp:1: rollout includes trainer, which is not below it"}));
}

TEST_F(MadeUpTree, BreaksOneByIncludingTheInternalsOfAnother) {
  folder("core", "HEADERS a.hpp internal/g.hpp");
  write("core/a.hpp", "#include \"core/internal/g.hpp\"\n");
  write("core/internal/g.hpp", "#include \"core/a.hpp\"\n");  // Its own may, and it is no circle.
  EXPECT_EQ(broken(), Sentences{});
  write("sim_hw/cards/b.hpp", "#include \"core/internal/g.hpp\"\n");
  EXPECT_EQ(broken(),
            (Sentences{"sim_hw/cards/b.hpp:1: includes core/internal/g.hpp, which only core may"}));
}

TEST_F(MadeUpTree, BreaksOneByTheLaboratoryInWhatRunsAJob) {
  folder("sim_hw/queries", "HEADERS q.hpp");
  write("sim_hw/queries/q.hpp", "#pragma once\n");
  folder("sim_hw/plan", "HEADERS p.hpp DEPS sim_hw/queries");
  write("sim_hw/plan/p.hpp", "#include \"sim_hw/queries/q.hpp\"\n");  // The laboratory may.
  folder("cli", "SOURCES laboratory.cpp no_laboratory.cpp DEPS sim_hw/queries");
  write("cli/laboratory.cpp", "#include \"sim_hw/queries/q.hpp\"\n");
  write("cli/no_laboratory.cpp", "\n");
  EXPECT_EQ(broken(), Sentences{});
  write("cli/no_laboratory.cpp", "#include \"sim_hw/queries/q.hpp\"\n");
  EXPECT_EQ(broken(),
            (Sentences{"cli/no_laboratory.cpp:1: includes sim_hw/queries/q.hpp, which a build with "
                       "-DTEMPER_LAB=OFF does not have"}));
}

TEST_F(MadeUpTree, BreaksOneByAPathThatDoesNotBeginAtTheRoot) {
  write("sim_hw/cards/b.cpp", "#include \"b.hpp\"\n");
  EXPECT_EQ(broken(),
            (Sentences{"sim_hw/cards/b.cpp:1: includes b.hpp, which is in no folder of the "
                       "sources; paths begin at the root"}));
}

TEST_F(MadeUpTree, BreaksOneByALongFile) {
  write("core/a.hpp", std::string(451, '\n'));
  EXPECT_EQ(broken(), (Sentences{"core/a.hpp: has 451 lines of at most 450"}));
  write("core/a.hpp", std::string(450, '\n'));
  EXPECT_EQ(broken(), Sentences{});
}

TEST_F(MadeUpTree, BreaksOneByALargeFolder) {
  write("core/a.hpp", std::string(8, '\n'));  // Of ten lines; the cards have two.
  EXPECT_EQ(broken({.folder_share = 0.79}), (Sentences{"core: has 8 of 10 lines, more than 79 %"}));
  EXPECT_EQ(broken({.folder_share = 0.80}), Sentences{});
}

TEST_F(MadeUpTree, BreaksOneByAFolderWithoutReadme) {
  write("study/CMakeLists.txt", "temper_module(study HEADERS h.hpp)");
  write("study/h.hpp", "#pragma once\n");
  EXPECT_EQ(broken(), (Sentences{"study: has sources and no README.md"}));
}

TEST_F(MadeUpTree, BreaksOneByASourceThatIsNotBuilt) {
  write("core/i.hpp", "#pragma once\n");
  write("tests/core/i_test.cpp", "\n");
  write("tests/support/j.hpp", "#pragma once\n");  // A header of the tests needs no list.
  EXPECT_EQ(broken(),
            (Sentences{"core/i.hpp: no CMakeLists.txt lists it",
                       "tests/core/i_test.cpp: no CMakeLists.txt lists it"}));
  folder("core", "HEADERS a.hpp i.hpp");
  write("tests/CMakeLists.txt", "temper_test(core SOURCES core/i_test.cpp DEPS core)");
  EXPECT_EQ(broken(), Sentences{});
}

TEST_F(MadeUpTree, BreaksOneByASourceListedTwice) {
  folder("core", "HEADERS a.hpp\n  a.hpp");
  EXPECT_EQ(broken(), (Sentences{"core/CMakeLists.txt:3: lists core/a.hpp again"}));
}

TEST_F(MadeUpTree, IsShownAsATable) {
  EXPECT_EQ(write_folder_table(read_source_tree(root())),
            "| folder | includes |\n|---|---|\n| `core` |  |\n| `sim_hw/cards` | core |\n");
}

}  // namespace
}  // namespace temper::test
