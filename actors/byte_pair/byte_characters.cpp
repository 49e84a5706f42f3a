#include "actors/byte_pair/byte_characters.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace temper::actors {
namespace {

constexpr std::size_t kBytes = 256;
constexpr std::size_t kCharacters = 0x144;  ///< All byte characters are below U+0144.

struct ByteCharacters {
  std::array<char16_t, kBytes> characters{};
  std::array<std::int16_t, kCharacters> bytes{};  ///< By character; -1 if it is not one of them.
};

constexpr ByteCharacters byte_characters() {
  ByteCharacters out;
  out.bytes.fill(-1);
  char16_t next = 0x100;
  for (std::size_t byte = 0; byte < kBytes; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
                           (byte >= 0xae && byte <= 0xff);
    out.characters[byte] = printable ? static_cast<char16_t>(byte) : next++;
    out.bytes[out.characters[byte]] = static_cast<std::int16_t>(byte);
  }
  return out;
}

constexpr ByteCharacters kByteCharacters = byte_characters();

}  // namespace

std::string to_byte_characters(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (const char byte : bytes) {
    const char16_t c = kByteCharacters.characters[static_cast<unsigned char>(byte)];
    if (c >= 0x80)
      out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
  }
  return out;
}

std::string from_byte_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t character = static_cast<unsigned char>(text[i]);
    if (character >= 0x80) {  // All of them take one or two bytes.
      if (character >= 0xe0 || i + 1 == text.size())
        return std::string(text);
      character = (character & 0x1fU) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3fU);
    }
    if (character >= kCharacters || kByteCharacters.bytes[character] < 0)
      return std::string(text);
    out += static_cast<char>(kByteCharacters.bytes[character]);
  }
  return out;
}

}  // namespace temper::actors
