// Reads described structs from JSON that json.hpp wrote: summary.json, live.json, samples.jsonl. A
// field that is missing or has another type keeps its default, because another version of Temper
// may have written the file.
#pragma once

#include "core/json_document.hpp"
#include "core/scalar_text.hpp"

#include <charconv>
#include <cmath>

namespace temper {

class JsonReader {
 public:
  explicit JsonReader(const nlohmann::json& object) : object_(object) {}

  template <class T>
  void field(int, std::string_view name, T& value, const std::type_identity_t<FieldMeta<T>>& = {}) {
    if (!object_.is_object())
      return;
    if (const auto it = object_.find(name); it != object_.end())
      read(*it, value);
  }

  template <class T>
  static void read(const nlohmann::json& from, T& to) {
    if constexpr (std::same_as<T, std::string>) {
      if (from.is_string())
        to = from.get_ref<const std::string&>();
    } else if constexpr (std::same_as<T, bool>) {
      if (from.is_boolean())
        to = from.get<bool>();
    } else if constexpr (std::is_enum_v<T>) {
      if (from.is_string())
        to = from_name<T>(from.get_ref<const std::string&>()).value_or(to);
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (from.is_number())
        to = from.get<T>();
    } else if constexpr (std::same_as<T, Duration>) {
      if (from.is_number())
        to = Duration(std::llround(from.get<double>() * 1e9));
    } else if constexpr (std::same_as<T, Time>) {
      Duration since{};
      read(from, since);
      to = Time(since);
    } else if constexpr (IdLike<T> || QuantityLike<T>) {
      if (from.is_number())
        to = T(from.get<typename T::rep>());
    } else if constexpr (OptionalLike<T>) {
      to.reset();
      if (!from.is_null())
        read(from, to.emplace());
    } else if constexpr (VectorLike<T>) {
      to.clear();
      if (from.is_array()) {
        for (const nlohmann::json& element : from)
          read(element, to.emplace_back());
      }
    } else if constexpr (MapLike<T>) {
      to.clear();
      if (from.is_object()) {
        for (const auto& [key, element] : from.items())
          read_entry<typename T::key_type>(key, element, to);
      }
    } else {
      static_assert(Described<T>, "no describe() for this type");
      JsonReader reader(from);
      describe(reader, to);
    }
  }

 private:
  template <class K, class M>
  static void read_entry(const std::string& text, const nlohmann::json& element, M& to) {
    K key{};
    if constexpr (std::same_as<K, std::string>) {
      key = text;
    } else if constexpr (std::is_enum_v<K>) {
      const auto named = from_name<K>(text);
      if (!named)
        return;
      key = *named;
    } else {
      if (std::from_chars(text.data(), text.data() + text.size(), key).ec != std::errc())
        return;
    }
    read(element, to[key]);
  }

  const nlohmann::json& object_;
};

/// Empty if the text is not a JSON object.
template <class T>
std::optional<T> from_json(std::string_view text) {
  const nlohmann::json document = parse_json(text);
  if (!document.is_object())
    return std::nullopt;
  T value;
  JsonReader::read(document, value);
  return value;
}

}  // namespace temper
