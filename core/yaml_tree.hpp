// A YAML document as a tree that remembers where each part was written, with `--set` overlays
// applied. The only user of yaml-cpp is its .cpp.
//
// Stricter than YAML: one document, a mapping at its root, keys are words and occur once, no
// aliases, anchors or tags, at most kMaxDepth levels and kMaxBytes of text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper {

/// One thing wrong with a configuration.
struct ConfigIssue {
  std::string location;  ///< "configs/x.yaml:12" or "--set a.b=c".
  std::string key;       ///< "rollout.replicas"; empty where no key is to blame.
  std::string message;
  bool operator==(const ConfigIssue&) const = default;
};

/// "configs/x.yaml:12: rollout.replicass: unknown key; did you mean `replicas`?", one per line.
std::string render(std::span<const ConfigIssue> issues);

struct YamlPlace {
  std::size_t source = 0;  ///< 0: the file; k: the k-th `--set`.
  int line = 0;            ///< From 1; 0 where there is none.
  auto operator<=>(const YamlPlace&) const = default;
};

struct YamlNode {
  enum class Kind {
    Null,
    Scalar,
    List,
    Map,
    Broken  ///< Was refused with an issue of its own; readers pass over it.
  };
  struct Entry;
  Kind kind = Kind::Null;
  YamlPlace place;
  std::string text;     ///< Of a scalar.
  bool quoted = false;  ///< A scalar in quotes or as a block is text, whatever it looks like.
  std::vector<Entry> entries;  ///< Of a list (keys empty) or a map.
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

  /// Parses `text`; `name` is what errors call it. Each of `sets` is "a.b=value", the value YAML,
  /// or "@path", a file that is laid over what there is, or "~key", which takes a key of the root
  /// away; a later one wins. What is wrong is in issues(); the root holds what could be read.
  YamlDocument(std::string_view name, std::string_view text, std::span<const std::string> sets);

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
  YamlNode root_;
  std::vector<YamlIssue> issues_;
};

}  // namespace temper
