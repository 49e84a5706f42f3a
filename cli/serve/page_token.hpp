// The secret that a client of the page shows.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string>

namespace temper::cli {

/// The token in this file, so that it stays the same from one start to the next; made with mode
/// 0600 if the file is missing. Errors: the file is not readable by its owner alone; it holds no
/// token (16 to 256 letters, digits, '-', '_', '.', '~').
Result<std::string> token_in(const std::filesystem::path& file);

}  // namespace temper::cli
