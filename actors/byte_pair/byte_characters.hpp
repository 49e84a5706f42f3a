// The 256 characters with which byte-level BPE represents bytes: printable Latin-1 characters as
// themselves, the others from U+0100 on, in order (as in GPT-2).
#pragma once

#include <string>
#include <string_view>

namespace temper::actors {

std::string to_byte_characters(std::string_view bytes);
/// The bytes that the characters represent. A text with any other character represents itself.
std::string from_byte_characters(std::string_view text);

}  // namespace temper::actors
