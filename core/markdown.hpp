// Markdown tables from describe(), for the generated reference pages of the configuration and the
// protocol.
#pragma once

#include "core/scalar_text.hpp"

namespace temper {

struct MarkdownOptions {
  std::string heading = "##";  ///< Prefix of section headings; subsections have the same level and
                               ///< dotted names.
  bool ids = false;            ///< Adds a column of field numbers (messages).
  bool defaults = true;        ///< Adds columns for default and bounds (configuration).
};

namespace detail {
struct MarkdownRow {
  int id = 0;
  std::string name;
  std::string type;
  std::string initial;
  std::string bounds;
  std::string doc;
};
std::string markdown_table(const std::vector<MarkdownRow>& rows, const MarkdownOptions& options);
std::string markdown_heading(const std::string& title, const MarkdownOptions& options);
/// The text in backquotes; empty for empty text.
std::string markdown_code(const std::string& text);
}  // namespace detail

class MarkdownWriter {
 public:
  MarkdownWriter(std::string path, const MarkdownOptions& options)
      : path_(std::move(path)), options_(options) {}

  template <class T>
  void field(int id,
             std::string_view name,
             T& value,
             const std::type_identity_t<FieldMeta<T>>& meta = {}) {
    detail::MarkdownRow row;
    row.id = id;
    row.name = name;
    row.type = type_name<T>();
    row.initial = initial(value);
    row.doc = meta.doc;
    if (!meta.example.empty())
      row.doc += " Example: " + detail::markdown_code(std::string(meta.example)) + ".";
    if constexpr (BoundedIfPresent<T>)
      row.bounds = bounds(of_value(meta));
    else if constexpr (Bounded<T>)
      row.bounds = bounds(meta);
    rows_.push_back(std::move(row));
    add_section(path_.empty() ? std::string(name) : path_ + "." + std::string(name), value);
  }

  /// The table of this struct, then a section for each nested struct.
  std::string take() && { return detail::markdown_table(rows_, options_) + sections_; }

 private:
  template <class T>
  static std::string type_name() {
    if constexpr (std::same_as<T, bool>)
      return "boolean";
    else if constexpr (std::same_as<T, std::string>)
      return "text";
    else if constexpr (std::same_as<T, std::byte>)
      return "byte";
    else if constexpr (std::is_enum_v<T>)
      return quoted_list(enum_names<T>());
    else if constexpr (std::floating_point<T>)
      return "number";
    else if constexpr (std::integral<T>)
      return "integer";
    else if constexpr (std::same_as<T, Duration> || std::same_as<T, Time>)
      return "duration";
    else if constexpr (std::same_as<T, Bytes>)
      return "size";
    else if constexpr (std::same_as<T, BytesPerSecond>)
      return "bandwidth";
    else if constexpr (std::same_as<T, FlopsPerSecond>)
      return "FLOP rate";
    else if constexpr (std::same_as<T, Tokens>)
      return "tokens";
    else if constexpr (std::same_as<T, Flops>)
      return "FLOP";
    else if constexpr (IdLike<T>)
      return "id";
    else if constexpr (OptionalLike<T>)
      return type_name<typename T::value_type>() + ", or null";
    else if constexpr (VectorLike<T>)
      return vector_name<typename T::value_type>();
    else if constexpr (MapLike<T>)
      return map_name(type_name<typename T::key_type>(), type_name<typename T::mapped_type>());
    else if constexpr (VariantLike<T>)
      return "one of several structs";
    else
      return "section";
  }

  static std::string map_name(const std::string& key, const std::string& value) {
    return "map of " + key + " to " + value;
  }

  template <class E>
  static std::string vector_name() {
    if constexpr (std::same_as<E, std::int32_t>)
      return "int32 blob";
    else if constexpr (std::same_as<E, float>)
      return "float32 blob";
    else if constexpr (BlobElement<E>)
      return "byte blob";
    else
      return "list of " + type_name<E>();
  }

  template <class T>
  static std::string initial(const T& value) {
    if constexpr (Scalar<T>)
      return detail::markdown_code(scalar_text(value));
    else if constexpr (OptionalLike<T>)
      return value ? initial(*value) : "null";
    else if constexpr (VectorLike<T>)
      return initial_list(value);
    else
      return "";
  }

  template <class E>
  static std::string initial_list(const std::vector<E>& values) {
    if (values.empty())
      return "`[]`";
    if constexpr (Scalar<E> && !BlobElement<E>) {
      std::string list;
      for (const E& value : values)
        list += (list.empty() ? "" : ", ") + scalar_text(value);
      return detail::markdown_code("[" + list + "]");
    } else {
      return "";
    }
  }

  template <class T>
  static std::string bounds(const FieldMeta<T>&) {
    return "";
  }
  template <Ordered T>
  static std::string bounds(const FieldMeta<T>& meta) {
    if (meta.min && meta.max)
      return scalar_text(*meta.min) + " to " + scalar_text(*meta.max);
    if (meta.min)
      return "from " + scalar_text(*meta.min);
    return meta.max ? "up to " + scalar_text(*meta.max) : "";
  }

  template <class T>
  void add_section(const std::string& path, T& value) {
    if constexpr (Described<T>) {
      sections_ += "\n" + detail::markdown_heading(path, options_);
      MarkdownWriter inner(path, options_);
      describe(inner, value);
      sections_ += std::move(inner).take();
    } else if constexpr (VectorLike<T> || OptionalLike<T>) {
      if constexpr (Described<typename T::value_type>) {
        typename T::value_type element{};
        add_section(path + (VectorLike<T> ? "[]" : ""), element);
      }
    } else if constexpr (MapLike<T>) {
      if constexpr (Described<typename T::mapped_type>) {
        typename T::mapped_type element{};
        add_section(path + ".*", element);
      }
    }
  }

  const std::string path_;
  const MarkdownOptions& options_;
  std::vector<detail::MarkdownRow> rows_;
  std::string sections_;
};

/// Tables of T's fields, with `value` as the defaults; section names start with `path`.
template <class T>
std::string to_markdown(T value = {}, const MarkdownOptions& options = {}, std::string path = "") {
  MarkdownWriter writer(std::move(path), options);
  describe(writer, value);
  return std::move(writer).take();
}

}  // namespace temper
