#include "core/yaml_overlay.hpp"

#include <algorithm>
#include <utility>

namespace temper {

YamlNode::Entry* find_entry(YamlNode& map, std::string_view key) {
  const auto found = std::find_if(map.entries.rbegin(),
                                  map.entries.rend(),
                                  [&](const YamlNode::Entry& entry) { return entry.key == key; });
  return found == map.entries.rend() ? nullptr : &*found;
}

bool YamlOverlay::is_map(const std::string& key) const {
  return std::find(maps_.begin(), maps_.end(), key) != maps_.end();
}

std::string YamlOverlay::inner(const std::string& key, const std::string& name) const {
  return key.empty() ? name : key + "." + (is_map(key) ? "*" : name);
}

void YamlOverlay::lay(YamlNode& target, YamlNode&& value, const std::string& key) const {
  const bool merges = target.kind == YamlNode::Kind::Map && value.kind == YamlNode::Kind::Map;
  if (!merges || (value.entries.empty() && is_map(key))) {
    target = std::move(value);
    return;
  }
  for (YamlNode::Entry& entry : value.entries)
    lay_entry(target, std::move(entry), key);
}

void YamlOverlay::lay_entry(YamlNode& target,
                            YamlNode::Entry&& entry,
                            const std::string& key) const {
  YamlNode::Entry* const old = find_entry(target, entry.key);
  if (old == nullptr) {
    target.entries.push_back(std::move(entry));
  } else if (entry.node.kind == YamlNode::Kind::Null && is_map(key)) {
    target.entries.erase(target.entries.begin() + (old - target.entries.data()));
  } else {
    old->place = entry.place;
    lay(old->node, std::move(entry.node), inner(key, entry.key));
  }
}

}  // namespace temper
