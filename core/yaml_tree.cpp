#include "core/yaml_tree.hpp"

#include "core/files.hpp"
#include "core/passwords.hpp"
#include "core/yaml_overlay.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>

namespace temper {
namespace {

std::string quoted_excerpt(std::string_view whole) {
  constexpr std::size_t kLongest = 40;
  const std::string text = without_passwords(whole);
  return text.size() <= kLongest ? fmt::format("`{}`", text)
                                 : fmt::format("`{}...`", text.substr(0, kLongest));
}

/// Builds the tree from parser events without recursion, so that nesting depth uses no stack.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::size_t source, bool has_lines, std::vector<YamlIssue>& issues)
      : source_(source), has_lines_(has_lines), issues_(issues) {}

  YamlNode take() { return std::move(root_); }
  bool too_deep() const { return too_deep_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    begin(YamlNode::Kind::Null, mark, anchor, "");
    end();
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    report(mark, "aliases (*name) are not supported");
    begin(YamlNode::Kind::Broken, mark, 0, "");
    end();
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    if (YamlNode* node = begin(YamlNode::Kind::Scalar, mark, anchor, tag)) {
      node->text = value;
      node->quoted = tag == "!";
    }
    end();
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(YamlNode::Kind::List, mark, anchor, tag);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(YamlNode::Kind::Map, mark, anchor, tag);
  }
  void OnMapEnd() override { end(); }

 private:
  struct OpenNode {
    YamlNode node;
    YamlPlace key_place;
    std::string key;
    bool has_key = false;  ///< In a map: true between a key and its value.
    bool key_bad = false;
  };

  YamlPlace place(const YAML::Mark& mark) const {
    return {source_, has_lines_ ? mark.line + 1 : 0};
  }
  void report(const YAML::Mark& mark, std::string message) {
    issues_.push_back({place(mark), "", std::move(message)});
  }

  YamlNode* begin(YamlNode::Kind kind,
                  const YAML::Mark& mark,
                  YAML::anchor_t anchor,
                  const std::string& tag) {
    if (skipped_ > 0 || open_.size() >= YamlDocument::kMaxDepth) {
      if (skipped_ == 0 && !too_deep_) {
        report(mark, fmt::format("nested deeper than {} levels", YamlDocument::kMaxDepth));
        too_deep_ = true;
      }
      ++skipped_;
      return nullptr;
    }
    if (anchor != 0)
      report(mark, "anchors (&name) are not supported");
    if (!tag.empty() && tag != "?" && tag != "!")
      report(mark, fmt::format("tags ({}) are not supported", quoted_excerpt(tag)));
    OpenNode& open = open_.emplace_back();
    open.node.kind = kind;
    open.node.place = place(mark);
    return &open.node;
  }

  void end() {
    if (skipped_ > 0) {
      --skipped_;
      return;
    }
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::List) {
      parent.node.entries.push_back({"", node.place, std::move(node)});
    } else if (!parent.has_key) {
      set_key(parent, node);
    } else {
      parent.has_key = false;
      if (node.kind == YamlNode::Kind::Null)
        node.place = parent.key_place;  // yaml-cpp marks what follows the missing value.
      if (!parent.key_bad)
        parent.node.entries.push_back({parent.key, parent.key_place, std::move(node)});
    }
  }

  void set_key(OpenNode& map, const YamlNode& key) {
    map.has_key = true;
    map.key = key.text;
    map.key_place = key.place;
    map.key_bad = key.kind != YamlNode::Kind::Scalar;
    if (map.key_bad)
      issues_.push_back({key.place, "", "expected a plain word as the key"});
  }

  const std::size_t source_;
  const bool has_lines_;  ///< False for the value of a `--set`.
  std::vector<YamlIssue>& issues_;
  YamlNode root_;
  std::vector<OpenNode> open_;
  std::size_t skipped_ = 0;  ///< Number of open nodes below the deepest allowed level.
  bool too_deep_ = false;
};

/// Parses one document and appends problems to `issues`. Empty if the text is not YAML.
std::optional<YamlNode> parse_text(std::string_view text,
                                   std::size_t source,
                                   bool has_lines,
                                   std::vector<YamlIssue>& issues) {
  TreeBuilder builder(source, has_lines, issues);
  const auto line_of = [has_lines](const YAML::Mark& mark) {
    return has_lines && !mark.is_null() ? mark.line + 1 : 0;
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder)) {
      std::vector<YamlIssue> ignored;
      TreeBuilder second(source, has_lines, ignored);
      if (parser.HandleNextDocument(second)) {
        issues.push_back({{source, std::max(1, second.take().place.line)},
                          "",
                          "expected one YAML document, found a second"});
      }
    }
  } catch (const YAML::Exception& e) {
    const bool open = std::string_view(e.msg).ends_with("not found");
    if (!builder.too_deep()) {  // otherwise the parser stopped for the reason already reported
      issues.push_back(
          {{source, line_of(e.mark)},
           "",
           fmt::format(
               "not YAML: {}{}", e.msg, open ? "; check quotes, brackets and indentation" : "")});
    }
    return std::nullopt;
  } catch (const std::exception& e) {
    issues.push_back({{source, 0}, "", fmt::format("not YAML: {}", e.what())});
    return std::nullopt;
  }
  return builder.take();
}

/// Where YAML would start a comment in this line; npos if nowhere.
std::size_t find_comment(std::string_view line) {
  char quote = 0;
  char before = ' ';  // the last character that is not a space
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool after_space = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
    if ((quote == '"' && c == '\\') || (quote == '\'' && line.substr(i, 2) == "''")) {
      ++i;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
    } else if (c == '#' && after_space) {
      return i;
    } else if ((c == '"' || c == '\'') &&
               std::string_view(" [{,:").find(before) != std::string::npos) {
      quote = c;
    }
    before = c == ' ' || c == '\t' ? before : c;
  }
  return std::string_view::npos;
}

/// Parses the value of a `--set`. A command line has no comments: in a plain value the text that
/// YAML would drop as a comment is kept, and in any other value it is an error.
std::optional<YamlNode> parse_set_value(std::string_view value,
                                        std::size_t source,
                                        std::vector<YamlIssue>& issues) {
  const bool one_line = value.find('\n') == std::string_view::npos;
  const std::size_t comment = one_line ? find_comment(value) : std::string_view::npos;
  if (comment == std::string_view::npos)
    return parse_text(value, source, false, issues);
  const std::size_t first = value.find_first_not_of(" \t");
  if (std::string_view("\"'[{|>").find(value[first]) != std::string_view::npos) {
    issues.push_back({{source, 0},
                      "",
                      fmt::format("a comment, {}: a command line has none; put the value in quotes",
                                  quoted_excerpt(value.substr(comment)))});
    return std::nullopt;
  }
  YamlNode plain;
  plain.kind = YamlNode::Kind::Scalar;
  plain.text = value.substr(first, value.find_last_not_of(" \t") + 1 - first);
  return plain;
}

/// Length of the UTF-8 sequence at the start of `text`; 0 if it is invalid or a control character.
std::size_t text_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80)
    return first >= 0x20 || first == '\n' || first == '\r' || first == '\t' ? 1 : 0;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size)
    return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  }
  return size;
}

/// Rejects text that yaml-cpp would misread. Returns false if it must not be parsed.
bool check_text(std::string_view text, std::size_t source, std::vector<YamlIssue>& issues) {
  if (text.size() > YamlDocument::kMaxBytes) {
    issues.push_back(
        {{source, 0},
         "",
         fmt::format("expected at most {} bytes, found {}", YamlDocument::kMaxBytes, text.size())});
    return false;
  }
  int line = 1;
  bool indentation = true;
  bool ok = true;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = text_character(text.substr(i));
    if (size == 0) {
      const auto byte = static_cast<unsigned char>(text[i]);
      issues.push_back(
          {{source, line}, "", fmt::format("expected UTF-8 text, found byte 0x{:02x}", byte)});
      return false;
    }
    if (text[i] == '\n') {
      ++line;
      indentation = true;
    } else if (indentation && text[i] == '\t') {
      issues.push_back({{source, line}, "", "found a tab in the indentation; YAML expects spaces"});
      ok = false;
      indentation = false;
    } else if (text[i] != ' ') {
      indentation = false;
    }
    i += size;
  }
  return ok;
}

void report_duplicates(const YamlNode& node, std::string path, std::vector<YamlIssue>& issues) {
  std::vector<const YamlNode::Entry*> sorted;
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    const YamlNode::Entry& entry = node.entries[i];
    const bool in_map = node.kind == YamlNode::Kind::Map;
    const std::string inner = in_map ? (path.empty() ? entry.key : path + "." + entry.key)
                                     : fmt::format("{}[{}]", path, i);
    report_duplicates(entry.node, inner, issues);
    if (in_map)
      sorted.push_back(&entry);
  }
  std::stable_sort(
      sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->key < b->key; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->key != sorted[i - 1]->key)
      continue;
    const int line = sorted[i - 1]->place.line;
    const std::string where = line > 0 ? fmt::format(" in line {}", line) : "";
    issues.push_back({sorted[i]->place,
                      path.empty() ? sorted[i]->key : path + "." + sorted[i]->key,
                      fmt::format("occurs twice; first{}", where.empty() ? " before" : where)});
  }
}

}  // namespace

YamlDocument::YamlDocument(std::string_view name,
                           std::string_view text,
                           std::span<const std::string> sets,
                           std::vector<std::string> maps)
    : name_(name), sets_(sets.begin(), sets.end()), maps_(std::move(maps)) {
  parse_file(text);
  for (std::size_t i = 0; i < sets_.size(); ++i)
    apply_set(i + 1, sets_[i]);
}

std::string YamlDocument::location(const YamlPlace& place) const {
  const bool is_set = place.source > 0 && !sets_[place.source - 1].starts_with('@');
  if (is_set)
    return "--set " + without_passwords(sets_[place.source - 1]);
  const std::string file = place.source > 0 ? sets_[place.source - 1].substr(1) : name_;
  return place.line > 0 ? fmt::format("{}:{}", file, place.line) : file;
}

void YamlDocument::parse_file(std::string_view text) {
  if (check_text(text, 0, issues_)) {
    if (std::optional<YamlNode> parsed = parse_text(text, 0, true, issues_))
      root_ = *std::move(parsed);
    constexpr std::string_view kExpected = "expected keys and values such as `name: first-run`";
    if (root_.kind == YamlNode::Kind::Map)
      report_duplicates(root_, "", issues_);
    else if (root_.kind != YamlNode::Kind::Null)
      issues_.push_back({root_.place, "", std::string(kExpected)});
    else if (issues_.empty())
      issues_.push_back({{}, "", fmt::format("{}, found an empty file", kExpected)});
  }
  if (root_.kind != YamlNode::Kind::Map) {
    root_ = {};
    root_.kind = YamlNode::Kind::Map;
  }
}

void YamlDocument::apply_file(std::size_t number, const std::string& path) {
  const auto text = read_file(path);
  if (!text) {
    issues_.push_back({{number, 0}, "", text.error().context});
    return;
  }
  const std::size_t known = issues_.size();
  if (!check_text(*text, number, issues_))
    return;
  std::optional<YamlNode> value = parse_text(*text, number, true, issues_);
  if (value && value->kind == YamlNode::Kind::Null)
    return;  // nothing but comments
  if (value && value->kind != YamlNode::Kind::Map)
    issues_.push_back({value->place, "", "expected keys and values such as `name: first-run`"});
  if (value)
    report_duplicates(*value, "", issues_);
  if (value && issues_.size() == known)
    YamlOverlay(maps_).lay(root_, *std::move(value), "");
}

void YamlDocument::apply_set(std::size_t number, std::string_view assignment) {
  if (assignment.starts_with('@'))
    return apply_file(number, std::string(assignment.substr(1)));
  if (assignment.starts_with('~')) {
    std::erase_if(root_.entries, [&](const auto& e) { return e.key == assignment.substr(1); });
    return;
  }
  const YamlPlace place{number, 0};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    issues_.push_back({place, "", "expected KEY=VALUE, such as rollout.replicas=2"});
    return;
  }
  const std::string path(assignment.substr(0, equals));
  const std::size_t known = issues_.size();
  std::optional<YamlNode> value = parse_set_value(assignment.substr(equals + 1), number, issues_);
  if (value)
    report_duplicates(*value, path, issues_);
  if (issues_.size() > known)
    return;
  value->place = place;

  const YamlOverlay overlay(maps_);
  std::string section;
  YamlNode* node = &root_;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (node->kind == YamlNode::Kind::Null)
      node->kind = YamlNode::Kind::Map;
    if (key.empty() || node->kind != YamlNode::Kind::Map) {
      const std::string outer = path.substr(0, begin > 0 ? begin - 1 : 0);
      issues_.push_back({place,
                         path,
                         key.empty()
                             ? "expected a name between the dots, found none"
                             : fmt::format("`{}` is a value, not a section with keys", outer)});
      return;
    }
    if (end == path.size()) {
      overlay.lay_entry(*node, {key, place, *std::move(value)}, section);
      return;
    }
    section = overlay.inner(section, key);
    YamlNode::Entry* entry = find_entry(*node, key);
    if (entry == nullptr)
      entry = &node->entries.emplace_back(YamlNode::Entry{key, place, {}});
    node = &entry->node;
    if (node->kind == YamlNode::Kind::Null)
      node->place = place;
    begin = end + 1;
  }
}

}  // namespace temper
