// Text helpers: UTF-8 validation, excerpts for messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace temper::actors {

/// Position of the first byte that is not part of well-formed UTF-8 (no surrogates, no overlong
/// forms, nothing above U+10FFFF); empty if the text is valid.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// For error messages: at most `limit` bytes on one line; other characters than printable ASCII
/// become "?".
std::string excerpt(std::string_view text, std::size_t limit = 80);

}  // namespace temper::actors
