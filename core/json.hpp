// JSON output from describe(): for `--json`, summary.json and metrics.jsonl. json_read.hpp reads
// it.
//
// Durations and times are numbers of seconds with up to nine decimals, exact to the nanosecond;
// other quantities and ids are plain numbers; enumerations are their names; an absent optional and
// a non-finite number are null; a variant is {"name": {...}}.
#pragma once

#include "core/scalar_text.hpp"

namespace temper {

enum class JsonStyle { OneLine, Pretty };

namespace detail {

/// Punctuation, indentation and escaping.
class JsonSink {
 public:
  JsonSink(std::string& out, JsonStyle style) : out_(out), style_(style) {}
  void begin(char bracket);
  void end(char bracket);
  /// Writes the comma and the line break before a key or an element.
  void next();
  void key(std::string_view name);
  void raw(std::string_view text) { out_ += text; }
  void string(std::string_view text);
  void number(double value);
  void seconds(Duration d);

 private:
  void break_line();
  std::string& out_;
  const JsonStyle style_;
  std::size_t depth_ = 0;
  bool first_ = true;
};

}  // namespace detail

class JsonWriter {
 public:
  JsonWriter(std::string& out, JsonStyle style) : sink_(out, style) {}

  template <class T>
  void field(int,
             std::string_view name,
             const T& value,
             const std::type_identity_t<FieldMeta<T>>& = {}) {
    sink_.key(name);
    write(value);
  }

  template <class T>
  void write(const T& value) {
    if constexpr (std::same_as<T, std::string>) {
      sink_.string(value);
    } else if constexpr (std::is_enum_v<T>) {
      if constexpr (std::same_as<T, std::byte>)
        sink_.raw(std::to_string(std::to_integer<unsigned>(value)));
      else
        sink_.string(name_of(value));
    } else if constexpr (std::same_as<T, float>) {
      std::isfinite(value) ? sink_.raw(number_text(value)) : sink_.raw("null");
    } else if constexpr (std::same_as<T, double>) {
      sink_.number(value);
    } else if constexpr (std::is_arithmetic_v<T> || IdLike<T>) {
      sink_.raw(scalar_text(value));
    } else if constexpr (std::same_as<T, Duration>) {
      sink_.seconds(value);
    } else if constexpr (std::same_as<T, Time>) {
      sink_.seconds(value.time_since_epoch());
    } else if constexpr (QuantityLike<T>) {
      write(value.count());
    } else if constexpr (OptionalLike<T>) {
      value ? write(*value) : sink_.raw("null");
    } else if constexpr (VectorLike<T>) {
      sink_.begin('[');
      for (const auto& element : value) {
        sink_.next();
        write(element);
      }
      sink_.end(']');
    } else if constexpr (MapLike<T>) {
      sink_.begin('{');
      for (const auto& [key, element] : value) {
        sink_.key(scalar_text(key));
        write(element);
      }
      sink_.end('}');
    } else if constexpr (VariantLike<T>) {
      sink_.begin('{');
      std::visit(
          [this](const auto& alternative) {
            sink_.key(std::remove_cvref_t<decltype(alternative)>::kName);
            write(alternative);
          },
          value);
      sink_.end('}');
    } else {
      static_assert(Described<T>, "no describe() for this type");
      sink_.begin('{');
      describe(*this, const_cast<T&>(value));  // A writer does not modify it.
      sink_.end('}');
    }
  }

 private:
  detail::JsonSink sink_;
};

/// Always valid JSON: invalid UTF-8 bytes are replaced. No trailing line break.
template <class T>
std::string to_json(const T& value, JsonStyle style = JsonStyle::OneLine) {
  std::string out;
  JsonWriter(out, style).write(value);
  return out;
}

}  // namespace temper
