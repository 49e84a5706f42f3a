// Fills every field of a described struct with a value derived from its field number, so that a new
// field does not change the bytes of other fields.
#pragma once

#include "core/describe.hpp"

namespace temper::test {

template <class T>
T sample_value(int seed);

struct SampleFiller {
  template <class T>
  void field(int id, std::string_view, T& value, const std::type_identity_t<FieldMeta<T>>& = {}) {
    value = sample_value<T>(id);
  }
};

template <class T>
T sample_value(int seed) {
  if constexpr (std::same_as<T, bool>) {
    return true;
  } else if constexpr (std::same_as<T, std::byte>) {
    return static_cast<std::byte>(seed);
  } else if constexpr (std::is_enum_v<T>) {
    return EnumNames<T>::value[static_cast<std::size_t>(seed) % EnumNames<T>::value.size()].first;
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(seed) + T(0.5);
  } else if constexpr (std::integral<T>) {
    return static_cast<T>(seed);
  } else if constexpr (std::same_as<T, std::string>) {
    return "text " + std::to_string(seed);
  } else if constexpr (IdLike<T> || QuantityLike<T>) {
    return T(static_cast<typename T::rep>(seed));
  } else if constexpr (std::same_as<T, Duration>) {
    return std::chrono::milliseconds(seed);
  } else if constexpr (std::same_as<T, Time>) {
    return Time(std::chrono::seconds(seed));
  } else if constexpr (OptionalLike<T>) {
    return sample_value<typename T::value_type>(seed);
  } else if constexpr (MapLike<T>) {
    return {
        {sample_value<typename T::key_type>(seed), sample_value<typename T::mapped_type>(seed)}};
  } else if constexpr (VectorLike<T>) {
    using E = typename T::value_type;
    return {sample_value<E>(seed), sample_value<E>(seed + 1)};
  } else {
    static_assert(Described<T>, "no sample value for this kind of field");
    T value{};
    SampleFiller filler;
    describe(filler, value);
    return value;
  }
}

}  // namespace temper::test
