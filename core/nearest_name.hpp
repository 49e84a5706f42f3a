// "did you mean ...?": the valid name closest to what was written.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace temper {

/// Insertions, deletions, substitutions and swaps of neighbours that turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The closest of `names`, or nothing if none is close (more than a third of its letters differ).
/// Among equals the first.
std::optional<std::string_view> nearest_name(std::string_view written,
                                             std::span<const std::string> names);

}  // namespace temper
