// The small text that a git checkout without git-lfs has in the place of a large file.
#pragma once

#include "core/result.hpp"

#include <string_view>

namespace temper {

/// Error InvalidInput: `content` is a pointer to a file, not the file, and what fetches it.
Status check_lfs_pointer(std::string_view content);

}  // namespace temper
