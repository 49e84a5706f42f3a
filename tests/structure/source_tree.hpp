// The sources as they lie on disk: which folder has which files, what each file includes, and what
// the CMakeLists.txt of each folder names. walls.hpp judges it.
//
// A folder's `internal/` counts as the folder. Paths are relative to the root, with `/`.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::test {

/// The floors from the lowest up; a folder may include what stands on a lower floor.
inline const std::vector<std::set<std::string>> kFloors = {
    {"core"}, {"sim_hw"}, {"actors"}, {"rollout", "trainer"}, {"orchestrator"}, {"study"}, {"cli"}};

/// The laboratory: what `-DTEMPER_LAB=OFF` leaves out. With the folders below each.
inline const std::set<std::string> kLaboratory = {"study",
                                                  "cli/study",
                                                  "orchestrator/worker/measure",
                                                  "orchestrator/worker/timing",
                                                  "sim_hw/ablation",
                                                  "sim_hw/calibration",
                                                  "sim_hw/cores",
                                                  "sim_hw/measurements",
                                                  "sim_hw/plan",
                                                  "sim_hw/published",
                                                  "sim_hw/queries",
                                                  "sim_hw/validation"};

/// One `#include "target"`.
struct Include {
  int line = 0;
  std::string target;
};

/// A `.hpp` or `.cpp`.
struct SourceFile {
  std::string path;
  int lines = 0;
  std::vector<Include> includes;
};

/// What a CMakeLists.txt names.
struct BuildFile {
  std::string path;
  /// Folder -> line: the DEPS of temper_module() and temper_program(), and every `temper::NAME`.
  std::map<std::string, int> deps;
  /// The paths that any command names, as far as they are written without a variable.
  std::set<std::string> listed;
  /// Line and path of what a temper_module() or temper_program() lists a second time.
  std::vector<std::pair<int, std::string>> listed_again;
};

/// One folder with sources.
struct Folder {
  std::vector<SourceFile> files;
  bool has_readme = false;

  int lines() const;
};

struct SourceTree {
  std::map<std::string, Folder> folders;         ///< On a floor; by path.
  std::map<std::string, BuildFile> build_files;  ///< By folder, also of tests/.
  std::vector<SourceFile> others;                ///< The sources of tests/.
};

/// Requires: `root` is a folder that can be read.
SourceTree read_source_tree(const std::filesystem::path& root);

/// The folder of a file; "a/b" for "a/b/internal/c.hpp".
std::string folder_of(std::string_view path);

}  // namespace temper::test
