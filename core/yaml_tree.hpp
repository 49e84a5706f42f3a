// A YAML document as a tree that records the place of each part, with `--set` overlays applied.
// yaml_tree.cpp is the only user of yaml-cpp.
//
// Stricter than YAML: one document with a mapping at its root; keys are plain words and unique; no
// aliases, anchors or tags; at most kMaxDepth levels and kMaxBytes of text.
#pragma once

#include "core/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper {

/// One error in a configuration.
struct ConfigIssue {
  std::string location;  ///< "configs/x.yaml:12" or "--set a.b=c".
  std::string key;       ///< "rollout.replicas"; empty if the error concerns no key.
  std::string message;
  bool operator==(const ConfigIssue&) const = default;
};

/// One line per issue: "configs/x.yaml:12: rollout.replicass: unknown key; did you mean
/// `replicas`?"
std::string render(std::span<const ConfigIssue> issues);
/// InvalidInput with the rendered issues, without a newline at the end.
Error config_error(std::span<const ConfigIssue> issues);

struct YamlPlace {
  std::size_t source = 0;  ///< 0: the file; k: the k-th `--set`.
  int line = 0;            ///< From 1; 0 if there is no line.
  auto operator<=>(const YamlPlace&) const = default;
};

struct YamlNode {
  enum class Kind {
    Null,
    Scalar,
    List,
    Map,
    Broken  ///< Has an issue of its own; readers skip it.
  };
  struct Entry;
  Kind kind = Kind::Null;
  YamlPlace place;
  std::string text;            ///< Text of a scalar.
  bool quoted = false;         ///< A quoted or block scalar is text, whatever it looks like.
  std::vector<Entry> entries;  ///< Elements of a list (with empty keys) or a map.
};
struct YamlNode::Entry {
  std::string key;
  YamlPlace place;
  YamlNode node;
};

struct YamlIssue {
  YamlPlace place;
  std::string key;
  std::string message;
};

class YamlDocument {
 public:
  static constexpr std::size_t kMaxDepth = 32;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  /// Parses `text`; errors call it `name`. Each element of `sets` is "a.b=value" with a YAML value,
  /// "@path" for a file merged over the document, or "~key" to remove a root key. Later elements
  /// win. `maps`: keys of maps whose entries users name, which can be removed (yaml_overlay.hpp).
  /// Errors are in issues(); root() holds everything that could be read.
  YamlDocument(std::string_view name,
               std::string_view text,
               std::span<const std::string> sets,
               std::vector<std::string> maps = {});

  const YamlNode& root() const { return root_; }
  const std::vector<YamlIssue>& issues() const { return issues_; }
  /// "configs/x.yaml:12" or "--set a.b=c".
  std::string location(const YamlPlace& place) const;

 private:
  void parse_file(std::string_view text);
  void apply_set(std::size_t number, std::string_view assignment);
  void apply_file(std::size_t number, const std::string& path);

  std::string name_;
  std::vector<std::string> sets_;
  std::vector<std::string> maps_;
  YamlNode root_;
  std::vector<YamlIssue> issues_;
};

}  // namespace temper
