#include "tests/structure/source_tree.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace temper::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "#include \"";

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool is_source(std::string_view path) {
  return path.ends_with(".hpp") || path.ends_with(".cpp");
}

SourceFile read_source(const fs::path& root, const std::string& path) {
  SourceFile file{path, 0, {}};
  std::istringstream in(text_of(root / path));
  for (std::string line; std::getline(in, line);) {
    ++file.lines;
    if (!line.starts_with(kBegin))
      continue;
    const auto end = line.find('"', kBegin.size());
    file.includes.push_back({file.lines, line.substr(kBegin.size(), end - kBegin.size())});
  }
  return file;
}

struct Word {
  int line = 0;
  std::string text;
};

/// The words of a CMake file; parentheses are words of their own, comments and quotes are dropped.
std::vector<Word> words_of(const std::string& text) {
  std::vector<Word> words;
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::string word;
    const auto close = [&] {
      if (!word.empty())
        words.push_back({number, word});
      word.clear();
    };
    for (const char c : line.substr(0, line.find('#'))) {
      if (c == '(' || c == ')') {
        close();
        words.push_back({number, std::string(1, c)});
      } else if (c == '"' || std::isspace(static_cast<unsigned char>(c))) {
        close();
      } else {
        word += c;
      }
    }
    close();
  }
  return words;
}

/// A word of the CMakeLists.txt in `folder` as a path from the root; empty if it has a variable.
std::string as_path(std::string word, const std::string& folder) {
  constexpr std::string_view kRoot = "${PROJECT_SOURCE_DIR}/";
  if (word.starts_with(kRoot))
    return word.substr(kRoot.size());
  if (word.find('$') != std::string::npos)
    return {};
  return (fs::path(folder) / word).lexically_normal().generic_string();
}

/// SOURCES, DEPS and the like.
bool is_keyword(const std::string& word) {
  return std::all_of(
      word.begin(), word.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

BuildFile read_build_file(const fs::path& root, const std::string& path) {
  BuildFile file{path, {}, {}, {}};
  const std::string folder = fs::path(path).parent_path().generic_string();
  std::string before, command, keyword;
  for (const Word& word : words_of(text_of(root / path))) {
    const bool ours = command == "temper_module" || command == "temper_program";
    if (word.text == "(") {
      command = before;
      keyword.clear();
    } else if (is_keyword(word.text) || word.text == ")") {
      keyword = word.text;
    } else if (word.text.starts_with("temper::")) {
      file.deps.emplace(word.text, word.line);
    } else if (is_source(word.text)) {
      const std::string source = as_path(word.text, folder);
      if (!source.empty() && !file.listed.insert(source).second && ours)
        file.listed_again.emplace_back(word.line, source);
    } else if (ours && keyword == "DEPS") {
      file.deps.emplace(word.text, word.line);
    }
    before = word.text;
  }
  return file;
}

/// `temper::a_b` becomes the folder `a/b`, if there is one.
void resolve_targets(SourceTree& tree) {
  std::map<std::string, std::string> folders;
  for (const auto& [folder, _] : tree.folders) {
    std::string name = folder;
    std::replace(name.begin(), name.end(), '/', '_');
    folders["temper::" + name] = folder;
  }
  for (auto& [_, file] : tree.build_files) {
    std::map<std::string, int> resolved;
    for (const auto& [dep, line] : file.deps) {
      const auto found = folders.find(dep);
      resolved.emplace(found == folders.end() ? dep : found->second, line);
    }
    file.deps = std::move(resolved);
  }
}

std::vector<std::string> paths_under(const fs::path& root, const std::string& top) {
  std::vector<std::string> paths;
  if (!fs::is_directory(root / top))
    return paths;
  for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
    if (entry.is_regular_file())
      paths.push_back(entry.path().lexically_relative(root).generic_string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

int Folder::lines() const {
  int sum = 0;
  for (const SourceFile& file : files)
    sum += file.lines;
  return sum;
}

std::string folder_of(std::string_view path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.filename() == "internal")
    folder = folder.parent_path();
  return folder.generic_string();
}

SourceTree read_source_tree(const fs::path& root) {
  SourceTree tree;
  const auto read_top = [&](const std::string& top, bool floor) {
    for (const std::string& path : paths_under(root, top)) {
      if (is_source(path) && floor)
        tree.folders[folder_of(path)].files.push_back(read_source(root, path));
      else if (is_source(path))
        tree.others.push_back(read_source(root, path));
      else if (path.ends_with("/CMakeLists.txt"))
        tree.build_files[folder_of(path)] = read_build_file(root, path);
    }
  };
  for (const auto& floor : kFloors) {
    for (const std::string& top : floor)
      read_top(top, true);
  }
  read_top("tests", false);
  for (auto& [folder, content] : tree.folders)
    content.has_readme = fs::exists(root / folder / "README.md");
  resolve_targets(tree);
  return tree;
}

}  // namespace temper::test
