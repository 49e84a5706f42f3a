#include "core/yaml.hpp"

#include <fmt/format.h>

namespace temper {
namespace {

std::string found_text(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::Null:
    case YamlNode::Kind::Broken:
      return "nothing";
    case YamlNode::Kind::List:
      return "a list";
    case YamlNode::Kind::Map:
      return "keys and values";
    case YamlNode::Kind::Scalar:
      break;
  }
  constexpr std::size_t kLongest = 40;
  std::string shown = node.text.substr(0, kLongest);
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  if (node.text.size() > kLongest)
    shown += "...";
  return node.quoted ? fmt::format("the text \"{}\"", shown) : fmt::format("`{}`", shown);
}

}  // namespace

namespace detail {

std::string yaml_string(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+";
  constexpr std::array<std::string_view, 6> kOther{"null", "Null", "NULL", "true", "false", "-"};
  const bool starts_as_word = !text.empty() && (std::isalpha(text.front()) || text.front() == '/' ||
                                                text.front() == '_' || text.front() == '.');
  const bool plain = starts_as_word && text.find_first_not_of(kPlain) == std::string_view::npos &&
                     std::find(kOther.begin(), kOther.end(), text) == kOther.end() &&
                     text != "..." && text != "---";
  if (plain)
    return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
  return out + '"';
}

}  // namespace detail

const YamlNode::Entry* YamlReader::enter(std::string_view name) {
  frame_.names.emplace_back(name);
  const YamlNode::Entry* found = nullptr;
  for (const YamlNode::Entry& entry : frame_.map->entries) {
    if (entry.key == name)
      found = &entry;
  }
  if (found != nullptr)
    enter_key(*found);
  return found;
}

void YamlReader::enter_key(const YamlNode::Entry& entry) {
  path_sizes_.push_back(path_.size());
  path_ += (path_.empty() ? "" : ".") + entry.key;
  places_[path_] = entry.place;
}

void YamlReader::enter_index(std::size_t index, const YamlPlace& place) {
  path_sizes_.push_back(path_.size());
  path_ += fmt::format("[{}]", index);
  places_[path_] = place;
}

void YamlReader::leave() {
  path_.resize(path_sizes_.back());
  path_sizes_.pop_back();
}

void YamlReader::report(const YamlPlace& place, std::string message) {
  issues_.push_back({place, path_, std::move(message)});
}

std::vector<std::string> YamlReader::keys_named(std::string_view name) const {
  std::vector<std::string> found;
  for (const std::string& key : all_keys_) {
    if (key.ends_with("." + std::string(name)))
      found.push_back("`" + key + "`");
  }
  return found;
}

void YamlReader::report_unknown_keys() {
  const auto& names = frame_.names;
  for (const YamlNode::Entry& entry : frame_.map->entries) {
    if (std::find(names.begin(), names.end(), entry.key) != names.end())
      continue;
    std::string message = "unknown key";
    if (const auto nearest = nearest_name(entry.key, names)) {
      message += fmt::format("; did you mean `{}`?", *nearest);
    } else if (const auto elsewhere = keys_named(entry.key); !elsewhere.empty()) {
      message += fmt::format("; did you mean {}?", fmt::join(elsewhere, " or "));
    } else {
      message += "; valid here: " + quoted_list(names);
    }
    enter_key(entry);
    report(entry.place, std::move(message));
    leave();
  }
}

void YamlReader::mismatch(const std::string& expected, const YamlNode& found) {
  report(found.place, fmt::format("expected {}, found {}", expected, found_text(found)));
}

void YamlReader::out_of_range(const std::string& expected, const YamlNode& found) {
  report(found.place, fmt::format("expected {} in range, found {}", expected, found_text(found)));
}

void YamlReader::out_of_bounds(const YamlNode& found,
                               const std::optional<std::string>& min,
                               const std::optional<std::string>& max) {
  std::string bounds;
  if (min && max)
    bounds = fmt::format("between {} and {}", *min, *max);
  else
    bounds = min ? "at least " + *min : "at most " + *max;
  report(found.place, fmt::format("must be {}, found {}", bounds, found_text(found)));
}

void YamlReader::unknown_name(const YamlNode& found, const std::vector<std::string>& names) {
  std::string message =
      fmt::format("expected one of {}, found {}", quoted_list(names), found_text(found));
  if (const auto nearest = nearest_name(found.text, names))
    message += fmt::format("; did you mean `{}`?", *nearest);
  report(found.place, std::move(message));
}

void YamlReader::bad_quantity(const std::string& expected,
                              const YamlNode& found,
                              const Error& why) {
  report(found.place,
         fmt::format("expected {}, found {}: {}", expected, found_text(found), why.context));
}

bool YamlReader::is_integer(std::string_view text) {
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  return text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string_view::npos;
}

std::vector<ConfigIssue> locate(const YamlDocument& document, std::vector<YamlIssue> issues) {
  std::stable_sort(issues.begin(), issues.end(), [](const YamlIssue& a, const YamlIssue& b) {
    return a.place < b.place;
  });
  std::vector<ConfigIssue> out;
  out.reserve(issues.size());
  for (YamlIssue& issue : issues)
    out.push_back({document.location(issue.place), std::move(issue.key), std::move(issue.message)});
  return out;
}

}  // namespace temper
