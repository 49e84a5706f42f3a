// Lays the values of one YAML document over another.
#pragma once

#include "core/yaml_tree.hpp"

#include <span>
#include <string>
#include <string_view>

namespace temper {

/// The last entry of this key, or null. Repeated keys are reported elsewhere. Requires: a map.
YamlNode::Entry* find_entry(YamlNode& map, std::string_view key);

/// Merges sections key by key, and replaces any other value. A map whose entries users name also
/// loses entries: all by `{}`, and one by null. The keys of a section have defaults,
/// so `{}` changes nothing there.
class YamlOverlay {
 public:
  /// `maps`: keys of those maps, with `*` for the name of an entry; must outlive the overlay.
  explicit YamlOverlay(std::span<const std::string> maps) : maps_(maps) {}

  /// `key`: of `target`, as made by inner(); empty for the root.
  void lay(YamlNode& target, YamlNode&& value, const std::string& key) const;
  /// `key`: of `target`. Requires: `target` is a map.
  void lay_entry(YamlNode& target, YamlNode::Entry&& entry, const std::string& key) const;
  /// The key of an entry: `a.b` for `b` in `a`, or `a.*` if users name the entries of `a`.
  std::string inner(const std::string& key, const std::string& name) const;

 private:
  bool is_map(const std::string& key) const;

  std::span<const std::string> maps_;
};

}  // namespace temper
