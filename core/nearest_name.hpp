// Finds the valid name closest to a misspelled one, for "did you mean `x`?".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace temper {

/// The number of insertions, deletions, substitutions and swaps of neighboring letters that turn
/// one name into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The closest of `names`, the first among equals; empty if more than a third of the letters
/// differ.
std::optional<std::string_view> nearest_name(std::string_view written,
                                             std::span<const std::string> names);

}  // namespace temper
