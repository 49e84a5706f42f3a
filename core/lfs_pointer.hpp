// Detects git-lfs pointers: the small text that a checkout without git-lfs has in place of a large
// file.
#pragma once

#include "core/result.hpp"

#include <string_view>

namespace temper {

/// Error InvalidInput, with the command that fetches the file, if `content` is a pointer.
Status check_lfs_pointer(std::string_view content);

}  // namespace temper
