// One declaration per struct. A struct that is configured, sent or stored has one function
//
//   void describe(auto& v, LinkConfig& c) {
//     v.field(1, "bandwidth", c.bandwidth, {.doc = "Per direction.", .min = BytesPerSecond(1e6)});
//   }
//
// and every reader and writer (YAML, msgpack, JSON, Markdown) is a visitor `v` with
//   template <class T> void field(int id, std::string_view name, T& value, const FieldMeta<T>&)
// Field ids identify fields on the wire and are never reused; names are for people. Enumerations
// specialize EnumNames; a tagged union is a std::variant of structs that each have kName.
#pragma once

#include "core/ids.hpp"
#include "core/units.hpp"

#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace temper {

namespace detail {
template <class T>
inline constexpr bool kIsOrdered = std::is_arithmetic_v<T>;
template <class Tag, class Rep>
inline constexpr bool kIsOrdered<Id<Tag, Rep>> = true;
template <class T>
requires requires(const T& quantity) {
  quantity.count() < quantity.count();
}
inline constexpr bool kIsOrdered<T> = true;
template <class T>
inline constexpr bool kIsOrdered<std::optional<T>> = kIsOrdered<T>;
}  // namespace detail

/// Types whose fields can have bounds: numbers, quantities and ids.
template <class T>
concept Ordered = detail::kIsOrdered<T>;

/// Metadata of a field. `doc` is one sentence; bounds are inclusive.
template <class T>
struct FieldMeta {
  std::string_view doc{};
  std::string_view example{};
  bool left_out_if_empty = false;  ///< Optional fields: msgpack has no entry for an empty one.
};
template <Ordered T>
struct FieldMeta<T> {
  std::string_view doc{};
  std::optional<T> min{};
  std::optional<T> max{};
  std::string_view example{};
};

/// Specialize with `static constexpr std::array<std::pair<E, std::string_view>, N> value{...}`.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires {
  EnumNames<E>::value.size();
};

template <NamedEnum E>
constexpr std::string_view name_of(E e) {
  for (const auto& [value, name] : EnumNames<E>::value) {
    if (value == e)
      return name;
  }
  return "?";
}

template <NamedEnum E>
constexpr std::optional<E> from_name(std::string_view text) {
  for (const auto& [value, name] : EnumNames<E>::value) {
    if (name == text)
      return value;
  }
  return std::nullopt;
}

namespace detail {
/// Accepts any field; used only to detect whether a type is described.
struct AnyVisitor {
  template <class T>
  void field(int, std::string_view, T&, const std::type_identity_t<FieldMeta<T>>& = {}) {}
};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class K, class T>
struct IsMap<std::map<K, T>> : std::true_type {};
template <class T>
struct IsVariant : std::false_type {};
template <class... Ts>
struct IsVariant<std::variant<Ts...>> : std::true_type {};
template <class T>
struct IsId : std::false_type {};
template <class Tag, class Rep>
struct IsId<Id<Tag, Rep>> : std::true_type {};
template <class T>
struct IsQuantity : std::false_type {};
template <class Tag, class Rep>
struct IsQuantity<Quantity<Tag, Rep>> : std::true_type {};
}  // namespace detail

template <class T>
concept Described = requires(detail::AnyVisitor v, T& t) {
  describe(v, t);
};
template <class T>
concept VectorLike = detail::IsVector<T>::value;
template <class T>
concept OptionalLike = detail::IsOptional<T>::value;
template <class T>
concept MapLike = detail::IsMap<T>::value;
template <class T>
concept VariantLike = detail::IsVariant<T>::value;
template <class T>
concept IdLike = detail::IsId<T>::value;
template <class T>
concept QuantityLike = detail::IsQuantity<T>::value;
/// Elements of arrays that are encoded as one binary blob (token ids, log-probs).
template <class T>
concept BlobElement = std::same_as<T, std::int32_t> || std::same_as<T, float> ||
    std::same_as<T, std::uint8_t> || std::same_as<T, std::byte>;

/// Describes a struct without fields: `TEMPER_NO_FIELDS(Stop)`.
#define TEMPER_NO_FIELDS(Type) \
  void describe(auto&, Type&) {}  // NOLINT(bugprone-macro-parentheses): a type cannot have them

template <class... Ts>
struct TypeList {
  static constexpr std::size_t kSize = sizeof...(Ts);
  template <class F>
  static void for_each(F&& f) {
    (f(std::type_identity<Ts>{}), ...);
  }
};

}  // namespace temper
