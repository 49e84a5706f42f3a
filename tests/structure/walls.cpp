#include "tests/structure/walls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <utility>

namespace temper::test {
namespace {

using Sentences = std::vector<std::string>;

/// The folders that each folder includes, with the first include of each, as `file:line`.
using Graph = std::map<std::string, std::map<std::string, std::string>>;

std::string place(const SourceFile& file, const Include& include) {
  return fmt::format("{}:{}", file.path, include.line);
}

Graph graph_of(const SourceTree& tree) {
  Graph graph;
  for (const auto& [folder, content] : tree.folders) {
    auto& edges = graph[folder];
    for (const SourceFile& file : content.files) {
      for (const Include& include : file.includes) {
        if (const std::string to = folder_of(include.target); to != folder)
          edges.emplace(to, place(file, include));
      }
    }
  }
  return graph;
}

int floor_of(const std::string& folder) {
  const std::string top = folder.substr(0, folder.find('/'));
  for (std::size_t i = 0; i < kFloors.size(); ++i) {
    if (kFloors[i].contains(top))
      return static_cast<int>(i);
  }
  return -1;
}

bool in_laboratory(std::string folder) {
  while (!folder.empty() && !kLaboratory.contains(folder)) {
    const std::size_t slash = folder.rfind('/');
    folder.resize(slash == std::string::npos ? 0 : slash);
  }
  return !folder.empty();
}

/// A job runs without the laboratory; only a `laboratory.cpp`, which that build leaves out,
/// includes it.
void check_laboratory(const std::string& folder,
                      const SourceFile& file,
                      const Include& include,
                      Sentences& broken) {
  if (in_laboratory(folder) || !in_laboratory(folder_of(include.target)) ||
      file.path == folder + "/laboratory.cpp")
    return;
  broken.push_back(fmt::format("{}: includes {}, which a build with -DTEMPER_LAB=OFF does not have",
                               place(file, include),
                               include.target));
}

void check_include(const std::string& folder,
                   const SourceFile& file,
                   const Include& include,
                   const SourceTree& tree,
                   Sentences& broken) {
  const std::string to = folder_of(include.target);
  const std::string where = place(file, include);
  if (!tree.folders.contains(to)) {
    broken.push_back(fmt::format(
        "{}: includes {}, which is in no folder of the sources; paths begin at the root",
        where,
        include.target));
    return;
  }
  if (to == folder)
    return;
  if (include.target.find("/internal/") != std::string::npos)
    broken.push_back(fmt::format("{}: includes {}, which only {} may", where, include.target, to));
  const std::string top = folder.substr(0, folder.find('/'));
  const bool same_top = to == top || to.starts_with(top + "/");
  if (!same_top && floor_of(to) >= floor_of(folder))
    broken.push_back(fmt::format("{}: {} includes {}, which is not below it", where, folder, to));
  const auto build_file = tree.build_files.find(folder);
  if (build_file == tree.build_files.end() || !build_file->second.deps.contains(to))
    broken.push_back(fmt::format(
        "{}: {} includes {}, which {}/CMakeLists.txt does not name", where, folder, to, folder));
}

void check_unused_deps(const SourceTree& tree, const Graph& graph, Sentences& broken) {
  for (const auto& [folder, build_file] : tree.build_files) {
    const auto edges = graph.find(folder);
    if (edges == graph.end())
      continue;
    for (const auto& [dep, line] : build_file.deps) {
      if (dep != folder && !edges->second.contains(dep))
        broken.push_back(fmt::format(
            "{}:{}: names {}, which {} does not include", build_file.path, line, dep, folder));
    }
  }
}

/// The shortest way along includes from `from` back to itself; empty if there is none.
std::vector<std::string> circle_through(const std::string& from, const Graph& graph) {
  std::map<std::string, std::string> reached_from;
  std::deque<std::string> open = {from};
  while (!open.empty() && !reached_from.contains(from)) {
    const std::string folder = open.front();
    open.pop_front();
    const auto edges = graph.find(folder);
    if (edges == graph.end())
      continue;
    for (const auto& [to, _] : edges->second) {
      if (reached_from.emplace(to, folder).second)
        open.push_back(to);
    }
  }
  if (!reached_from.contains(from))
    return {};
  std::vector<std::string> circle = {from};
  do {
    circle.push_back(reached_from.at(circle.back()));
  } while (circle.back() != from);
  std::reverse(circle.begin(), circle.end());
  return circle;
}

/// Each folder is in at most one of the circles that are told.
void check_circles(const Graph& graph, Sentences& broken) {
  std::set<std::string> told;
  for (const auto& [folder, _] : graph) {
    const std::vector<std::string> circle = circle_through(folder, graph);
    const bool new_one = std::none_of(
        circle.begin(), circle.end(), [&](const std::string& f) { return told.contains(f); });
    if (circle.empty() || !new_one)
      continue;
    told.insert(circle.begin(), circle.end());
    std::string sentence = fmt::format("{} is a circle:", fmt::join(circle, " -> "));
    for (std::size_t i = 0; i + 1 < circle.size(); ++i)
      sentence += "\n    " + graph.at(circle[i]).at(circle[i + 1]);
    broken.push_back(sentence);
  }
}

void check_size(const SourceTree& tree, const Limits& limits, Sentences& broken) {
  const auto check_file = [&](const SourceFile& file) {
    if (file.lines > limits.file_lines)
      broken.push_back(
          fmt::format("{}: has {} lines of at most {}", file.path, file.lines, limits.file_lines));
  };
  int all = 0;
  for (const auto& [_, content] : tree.folders) {
    all += content.lines();
    std::for_each(content.files.begin(), content.files.end(), check_file);
  }
  std::for_each(tree.others.begin(), tree.others.end(), check_file);
  for (const auto& [folder, content] : tree.folders) {
    if (content.lines() > limits.folder_share * all)
      broken.push_back(fmt::format("{}: has {} of {} lines, more than {:.0f} %",
                                   folder,
                                   content.lines(),
                                   all,
                                   limits.folder_share * 100));
  }
}

void check_listed(const SourceTree& tree, Sentences& broken) {
  std::set<std::string> listed;
  for (const auto& [_, build_file] : tree.build_files) {
    listed.insert(build_file.listed.begin(), build_file.listed.end());
    for (const auto& [line, path] : build_file.listed_again)
      broken.push_back(fmt::format("{}:{}: lists {} again", build_file.path, line, path));
  }
  const auto check_file = [&](const SourceFile& file) {
    if (!listed.contains(file.path))
      broken.push_back(fmt::format("{}: no CMakeLists.txt lists it", file.path));
  };
  for (const auto& [_, content] : tree.folders)
    std::for_each(content.files.begin(), content.files.end(), check_file);
  for (const SourceFile& file : tree.others) {  // Headers of tests need no list.
    if (file.path.ends_with(".cpp"))
      check_file(file);
  }
}

}  // namespace

std::vector<std::string> broken_rules(const SourceTree& tree, const Limits& limits) {
  Sentences broken;
  const Graph graph = graph_of(tree);
  for (const auto& [folder, content] : tree.folders) {
    if (!content.has_readme)
      broken.push_back(fmt::format("{}: has sources and no README.md", folder));
    for (const SourceFile& file : content.files) {
      for (const Include& include : file.includes)
        check_include(folder, file, include, tree, broken);
      for (const Include& include : file.includes)
        check_laboratory(folder, file, include, broken);
    }
  }
  check_circles(graph, broken);
  check_unused_deps(tree, graph, broken);
  check_size(tree, limits, broken);
  check_listed(tree, broken);
  return broken;
}

std::string write_folder_table(const SourceTree& tree) {
  std::vector<std::pair<std::string, std::map<std::string, std::string>>> rows;
  for (const auto& row : graph_of(tree))
    rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return floor_of(a.first) < floor_of(b.first);
  });
  std::string table = "| folder | includes |\n|---|---|\n";
  for (const auto& [folder, edges] : rows) {
    std::vector<std::string> names;
    for (const auto& [to, _] : edges)
      names.push_back(to);
    std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return floor_of(a) < floor_of(b);
    });
    table += fmt::format("| `{}` | {} |\n", folder, fmt::join(names, ", "));
  }
  return table;
}

}  // namespace temper::test
