// The access token of the web page.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string>

namespace temper::cli {

/// Reads the token from a file, so that it stays the same across starts. A missing file is created
/// with mode 0600 and a new token. Errors: other users can read the file; it holds no token (16 to
/// 256 letters, digits, '-', '_', '.', '~').
Result<std::string> token_in(const std::filesystem::path& file);

}  // namespace temper::cli
