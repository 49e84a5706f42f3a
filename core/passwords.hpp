// Passwords in addresses, which no message repeats.
#pragma once

#include <string>
#include <string_view>

namespace temper {

/// `text` with each "USER:PASSWORD@" of an address in it as "***@".
std::string without_passwords(std::string_view text);

}  // namespace temper
