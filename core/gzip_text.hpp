// A whole text compressed at once (gzip, RFC 1952). Fast rather than small: level 1.
#pragma once

#include <string>
#include <string_view>

namespace temper {

/// Requires: it has less than 4 GiB.
std::string to_gzip(std::string_view text);

}  // namespace temper
