// docs/protocol.md, made from the catalogue.
#pragma once

#include <string>
#include <string_view>

namespace temper::test {

/// "83 01 14 ..."; `per_line` bytes a line.
std::string hex(std::string_view bytes, std::size_t per_line);

std::string protocol_page();

}  // namespace temper::test
