// Reads a JSON array of counts from a file, for example recorded response lengths.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace temper {

/// Returns the integers in order. Errors: the file cannot be read, is not an array or is empty, or
/// an entry is not an integer >= 1. `what` names the counts in messages ("lengths").
Result<std::vector<std::int64_t>> read_counts(const std::filesystem::path& file,
                                              std::string_view what);

}  // namespace temper
