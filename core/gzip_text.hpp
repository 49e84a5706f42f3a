// Compresses a whole text at once (gzip, RFC 1952) at level 1: fast rather than small.
#pragma once

#include <string>
#include <string_view>

namespace temper {

/// Requires: `text` is smaller than 4 GiB.
std::string to_gzip(std::string_view text);

}  // namespace temper
