// What a run leaves to be looked at, made again from its log: of a run that ended before there was
// a live.json, or whose files were removed.
#pragma once

#include "core/result.hpp"

#include <filesystem>

namespace temper::cli {

/// Makes live.json and the time line of a run that has none and goes on nowhere. Nothing is done to
/// one that has a live.json. Errors: the log cannot be read, the files cannot be written.
Status provide_live_file(const std::filesystem::path& run_dir);

}  // namespace temper::cli
