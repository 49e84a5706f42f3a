// Generates docs/reference/protocol.md from the catalog.
#pragma once

#include <string>
#include <string_view>

namespace temper::test {

/// Hexadecimal text such as "83 01 14"; `per_line` bytes per line.
std::string hex(std::string_view bytes, std::size_t per_line);

std::string protocol_page();

}  // namespace temper::test
