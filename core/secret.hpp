// Secrets by which a client proves what it may do: unlike the numbers of core/random.hpp, nobody
// can compute them.
#pragma once

#include <string>
#include <string_view>

namespace temper {

/// 128 bits of the kernel's random numbers as hexadecimal digits.
std::string make_secret();

/// Equality in constant time. An empty secret equals nothing.
bool is_same_secret(std::string_view a, std::string_view b);

}  // namespace temper
