// Encodes a struct as a byte blob, for message fields whose own layer does not know the struct.
#pragma once

#include "core/msgpack.hpp"

namespace temper {

template <class T>
std::vector<std::byte> encode_blob(const T& value) {
  const std::string text = encode(value);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Decodes one value that spans all of `blob`. Error: Corrupt, with the path of the field.
template <class T>
Result<T> decode_blob(std::span<const std::byte> blob) {
  return decode<T>({reinterpret_cast<const char*>(blob.data()), blob.size()});
}

}  // namespace temper
