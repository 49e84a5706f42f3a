// The rules of the house for its folders, checked against the includes
// (docs/explanation/architecture.md, "Floors and rooms"): no circle, no include that CMake does not
// name and no name without an include, only lower floors, nothing of the laboratory in what runs a
// job, small files and folders, a README in each, every file built.
#pragma once

#include "tests/structure/source_tree.hpp"

#include <string>
#include <vector>

namespace temper::test {

struct Limits {
  int file_lines = 450;
  double folder_share = 0.20;  ///< Of the lines on all floors.
};

/// One sentence per broken rule, with `file:line` in front where there is one; empty if all hold.
std::vector<std::string> broken_rules(const SourceTree& tree, const Limits& limits);

/// Who includes whom, as a table in Markdown: a row per folder, with the folders it includes.
std::string write_folder_table(const SourceTree& tree);

}  // namespace temper::test
