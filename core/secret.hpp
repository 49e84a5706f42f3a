// Unpredictable secrets with which a client proves its permissions. Unlike core/random.hpp, they
// come from the kernel's random number generator.
#pragma once

#include <string>
#include <string_view>

namespace temper {

/// 128 random bits from the kernel, as hexadecimal digits.
std::string make_secret();

/// Constant-time comparison. An empty secret never matches.
bool is_same_secret(std::string_view a, std::string_view b);

}  // namespace temper
