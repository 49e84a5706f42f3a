// Removes passwords from addresses before they appear in messages.
#pragma once

#include <string>
#include <string_view>

namespace temper {

/// Replaces each "USER:PASSWORD@" of an address in `text` with "***@".
std::string without_passwords(std::string_view text);

}  // namespace temper
