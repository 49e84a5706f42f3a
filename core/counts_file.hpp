// A file with a JSON array of counts, such as the lengths of responses that a run recorded. No
// threads.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace temper {

/// The integers of the array, each 1 or more, in their order. Errors: the file cannot be read, is
/// no array or an empty one, or an entry is something else; `what` names the counts ("lengths").
Result<std::vector<std::int64_t>> read_counts(const std::filesystem::path& file,
                                              std::string_view what);

}  // namespace temper
