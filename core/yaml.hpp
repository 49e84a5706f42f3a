// Strict YAML from describe(): reads a configuration and writes the resolved one.
//
// The reader reports all errors at once, each with its place, its key, the expected and the found
// value, and the nearest valid name. Unknown and duplicate keys are errors. A Duration, Bytes or
// rate needs a unit; a count is a plain integer. A quoted value is text, an enumerator or a
// quantity with a unit, but never a number or a boolean. Missing keys keep their default, and so do
// keys whose value is unreadable or out of bounds, so that later checks can rely on the bounds.
#pragma once

#include "core/nearest_name.hpp"
#include "core/scalar_text.hpp"
#include "core/yaml_tree.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace temper {

namespace detail {
/// Collects the dotted names of every key of a described struct.
struct KeyCollector {
  std::string prefix;
  std::vector<std::string>& keys;
  std::vector<std::string>& maps;  ///< Also those in maps, with `*` for the name of an entry.
  template <class T>
  void field(int, std::string_view name, T& value, const std::type_identity_t<FieldMeta<T>>& = {}) {
    const std::string key = prefix + std::string(name);
    if constexpr (Described<T>) {
      KeyCollector inner{key + ".", keys, maps};
      describe(inner, value);
    } else {
      keys.push_back(key);
      collect_maps<T>(key);
    }
  }

 private:
  template <class T>
  void collect_maps(const std::string& key) {
    if constexpr (Described<T>) {
      T value{};
      std::vector<std::string> unused;
      KeyCollector inner{key + ".", unused, maps};
      describe(inner, value);
    } else if constexpr (OptionalLike<T>) {
      collect_maps<typename T::value_type>(key);
    } else if constexpr (MapLike<T>) {
      maps.push_back(key);
      collect_maps<typename T::mapped_type>(key + ".*");
    }
  }
};

struct EmptyCheck {
  bool empty = true;
  template <class T>
  void field(int, std::string_view, T&, const std::type_identity_t<FieldMeta<T>>& = {}) {
    empty = false;
  }
};

/// As YAML: plain if it reads back as the same text, otherwise in double quotes.
std::string yaml_string(std::string_view text);
}  // namespace detail

class YamlReader {
 public:
  /// `document` must outlive the reader. `all_keys`: the dotted names of all keys, for suggestions
  /// across sections.
  YamlReader(const YamlDocument& document, std::vector<std::string> all_keys)
      : document_(document), all_keys_(std::move(all_keys)) {}

  template <class T>
  void read_root(T& out) {
    read(document_.root(), out);
  }

  /// Called by describe() for each field of the struct that is being read.
  template <class T>
  void field(int,
             std::string_view name,
             T& value,
             const std::type_identity_t<FieldMeta<T>>& meta = {}) {
    const YamlNode::Entry* entry = enter(name);
    if (entry == nullptr)
      return;
    if constexpr (Described<T>) {
      read(entry->node, value);
    } else {
      const std::size_t before = issues_.size();
      T given{};
      read(entry->node, given);
      if constexpr (Bounded<T>) {
        if (issues_.size() == before)
          check_bounds(entry->node, given, meta);
      } else if constexpr (BoundedIfPresent<T>) {
        if (issues_.size() == before && given)
          check_bounds(entry->node, *given, of_value(meta));
      }
      if (issues_.size() == before && entry->node.kind != YamlNode::Kind::Broken)
        value = std::move(given);
    }
    leave();
  }

  /// In the order in which the reader found them.
  const std::vector<YamlIssue>& issues() const { return issues_; }
  /// The place of each key that is present.
  const std::map<std::string, YamlPlace>& places() const { return places_; }

 private:
  /// The map that is being read and the names it may hold.
  struct Frame {
    const YamlNode* map = nullptr;
    std::vector<std::string> names;
  };

  template <class T>
  void read(const YamlNode& node, T& out) {
    if (node.kind == YamlNode::Kind::Broken)
      return;
    if constexpr (OptionalLike<T>) {
      out.reset();
      if (node.kind != YamlNode::Kind::Null)
        read(node, out.emplace());
    } else if constexpr (VectorLike<T>) {
      read_list(node, out);
    } else if constexpr (MapLike<T>) {
      read_map(node, out);
    } else if constexpr (Described<T>) {
      read_struct(node, out);
    } else {
      static_assert(Scalar<T>, "no YAML form for this type");
      if (node.kind != YamlNode::Kind::Scalar)
        mismatch(type_text<T>(), node);
      else
        read_scalar(node, out);
    }
  }

  template <class T>
  void read_scalar(const YamlNode& node, T& out) {
    // JSON can express an enumerator or a quantity with a unit only as quoted text.
    if constexpr (std::same_as<T, std::string>) {
      out = node.text;
    } else if constexpr (std::is_enum_v<T>) {
      if (const std::optional<T> value = from_name<T>(node.text))
        out = *value;
      else
        unknown_name(node, enum_names<T>());
    } else if constexpr (WithUnit<T>) {
      Result<T> value = parse_with_unit(node.text, std::type_identity<T>{});
      if (value)
        out = *value;
      else
        bad_quantity(type_text<T>(), node, value.error());
    } else if (node.quoted) {
      mismatch(type_text<T>(), node);
    } else if constexpr (std::same_as<T, bool>) {
      if (node.text != "true" && node.text != "false")
        return mismatch(type_text<T>(), node);
      out = node.text == "true";
    } else if constexpr (std::is_arithmetic_v<T>) {
      read_number(node, out);
    } else {  // An id or a quantity without a unit.
      typename T::rep number{};
      if (read_number(node, number))
        out = T(number);
    }
  }

  template <class T>
  bool read_number(const YamlNode& node, T& out) {
    const char* const begin = node.text.data();
    const char* const end = begin + node.text.size();
    const char* const digits =
        node.text.starts_with('+') && !node.text.starts_with("+-") ? begin + 1 : begin;
    T value{};
    const auto [stop, errc] = std::from_chars(digits, end, value);
    if (stop != end || digits == end || errc == std::errc::invalid_argument) {
      // For an unsigned number, report "-1" as out of range rather than as a syntax error.
      if (std::unsigned_integral<T> && is_integer(node.text))
        out_of_range(type_text<T>(), node);
      else
        mismatch(type_text<T>(), node);
      return false;
    }
    bool in_range = errc == std::errc{};
    if constexpr (std::floating_point<T>)
      in_range = in_range && std::isfinite(value);
    if (!in_range) {
      out_of_range(type_text<T>(), node);
      return false;
    }
    out = value;
    return true;
  }

  template <class E>
  void read_list(const YamlNode& node, std::vector<E>& out) {
    if (node.kind != YamlNode::Kind::List)
      return mismatch("a list such as [a, b]", node);
    out.clear();
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
      enter_index(i, node.entries[i].node.place);
      E element{};
      read(node.entries[i].node, element);
      out.push_back(std::move(element));
      leave();
    }
  }

  template <class K, class E>
  void read_map(const YamlNode& node, std::map<K, E>& out) {
    if (node.kind != YamlNode::Kind::Map)
      return mismatch("keys and values", node);
    out.clear();
    for (const YamlNode::Entry& entry : node.entries) {
      enter_key(entry);
      YamlNode word;
      word.kind = YamlNode::Kind::Scalar;
      word.text = entry.key;
      K key{};
      E element{};
      const std::size_t before = issues_.size();
      read(word, key);
      read(entry.node, element);
      if (issues_.size() == before)
        out.emplace(std::move(key), std::move(element));
      leave();
    }
  }

  template <class T>
  void read_struct(const YamlNode& node, T& out) {
    if (node.kind != YamlNode::Kind::Map)
      return mismatch("keys and values", node);
    Frame outer = std::exchange(frame_, Frame{&node, {}});
    describe(*this, out);
    report_unknown_keys();
    frame_ = std::move(outer);
  }

  template <class T>
  void check_bounds(const YamlNode&, const T&, const FieldMeta<T>&) {}
  template <Ordered T>
  void check_bounds(const YamlNode& node, const T& value, const FieldMeta<T>& meta) {
    const bool low = meta.min && value < *meta.min;
    const bool high = meta.max && value > *meta.max;
    if (low || high) {
      out_of_bounds(node,
                    meta.min ? std::optional(scalar_text(*meta.min)) : std::nullopt,
                    meta.max ? std::optional(scalar_text(*meta.max)) : std::nullopt);
    }
  }

  /// Records the name as valid. Returns its entry and makes it the current path, or null if it is
  /// missing.
  const YamlNode::Entry* enter(std::string_view name);
  void enter_index(std::size_t index, const YamlPlace& place);
  void enter_key(const YamlNode::Entry& entry);
  void leave();

  void report(const YamlPlace& place, std::string message);
  void report_unknown_keys();
  /// Quoted keys of any section that end with this name.
  std::vector<std::string> keys_named(std::string_view name) const;
  void mismatch(const std::string& expected, const YamlNode& found);
  void out_of_range(const std::string& expected, const YamlNode& found);
  void out_of_bounds(const YamlNode& found,
                     const std::optional<std::string>& min,
                     const std::optional<std::string>& max);
  void unknown_name(const YamlNode& found, const std::vector<std::string>& names);
  void bad_quantity(const std::string& expected, const YamlNode& found, const Error& why);
  static bool is_integer(std::string_view text);

  const YamlDocument& document_;
  const std::vector<std::string> all_keys_;
  Frame frame_;
  std::string path_;
  std::vector<std::size_t> path_sizes_;  ///< Lengths of the enclosing paths.
  std::vector<YamlIssue> issues_;
  std::map<std::string, YamlPlace> places_;
};

/// A value read from YAML and all issues found.
template <class T>
struct YamlValue {
  T value;
  YamlDocument document;
  std::vector<YamlIssue> issues;            ///< Issues of the document, then of the reader.
  std::map<std::string, YamlPlace> places;  ///< Places of the keys that are present.

  /// The place of the key, or of its innermost enclosing section, or else the file.
  YamlPlace place_of(std::string key) const {
    while (true) {
      if (const auto found = places.find(key); found != places.end())
        return found->second;
      const std::size_t cut = key.find_last_of(".[");
      if (cut == std::string::npos)
        return {};
      key.resize(cut);
    }
  }
};

template <class T>
YamlValue<T> read_yaml(std::string_view name,
                       std::string_view text,
                       std::span<const std::string> sets = {}) {
  T value{};
  std::vector<std::string> keys, maps;
  detail::KeyCollector collector{"", keys, maps};
  describe(collector, value);
  YamlValue<T> out{std::move(value), YamlDocument(name, text, sets, std::move(maps)), {}, {}};
  YamlReader reader(out.document, std::move(keys));
  reader.read_root(out.value);
  out.issues = out.document.issues();
  out.issues.insert(out.issues.end(), reader.issues().begin(), reader.issues().end());
  out.places = reader.places();
  return out;
}

/// Sorted by place: the file first, then each `--set`.
std::vector<ConfigIssue> locate(const YamlDocument& document, std::vector<YamlIssue> issues);

class YamlWriter {
 public:
  explicit YamlWriter(std::string& out) : out_(out) {}

  template <class T>
  void field(int,
             std::string_view name,
             const T& value,
             const std::type_identity_t<FieldMeta<T>>& = {}) {
    entry(name, value);
  }

  template <class T>
  void write_root(const T& value) {
    describe(*this, const_cast<T&>(value));  // A writer does not modify it.
  }

 private:
  template <class T>
  void entry(std::string_view key, const T& value) {
    start_line();
    out_ += key;
    out_ += ':';
    write_value(value);
  }

  /// Writes the part after "key:" or "-".
  template <class T>
  void write_value(const T& value) {
    if constexpr (OptionalLike<T>) {
      if (value)
        write_value(*value);
      else
        out_ += " null\n";
    } else if constexpr (VectorLike<T>) {
      write_list(value);
    } else if constexpr (MapLike<T>) {
      if (value.empty()) {
        out_ += " {}\n";
        return;
      }
      out_ += '\n';
      ++depth_;
      for (const auto& [key, element] : value)
        entry(detail::yaml_string(scalar_text(key)), element);
      --depth_;
    } else if constexpr (Described<T>) {
      detail::EmptyCheck check;
      describe(check, const_cast<T&>(value));
      if (check.empty) {
        out_ += " {}\n";
        return;
      }
      out_ += '\n';
      ++depth_;
      describe(*this, const_cast<T&>(value));
      --depth_;
    } else {
      out_ += ' ';
      out_ += word(value);
      out_ += '\n';
    }
  }

  template <class E>
  void write_list(const std::vector<E>& values) {
    if constexpr (Scalar<E>) {
      out_ += " [";
      for (std::size_t i = 0; i < values.size(); ++i) {
        out_ += i > 0 ? ", " : "";
        out_ += word(values[i]);
      }
      out_ += "]\n";
    } else if (values.empty()) {
      out_ += " []\n";
    } else {
      out_ += '\n';
      ++depth_;
      for (const E& element : values) {
        start_line();
        out_ += '-';
        write_value(element);
      }
      --depth_;
    }
  }

  template <class T>
  static std::string word(const T& value) {
    if constexpr (std::same_as<T, std::string>)
      return detail::yaml_string(value);
    else
      return scalar_text(value);
  }

  void start_line() { out_.append(2 * depth_, ' '); }

  std::string& out_;
  std::size_t depth_ = 0;
};

/// The text reads back as an equal value. Requires: numbers are finite and text is UTF-8.
template <class T>
std::string to_yaml(const T& value) {
  std::string out;
  YamlWriter(out).write_root(value);
  return out;
}

}  // namespace temper
