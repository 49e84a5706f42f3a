// Rebuilds live.json and the timeline of a run from its log, if the files are missing.
#pragma once

#include "core/result.hpp"

#include <filesystem>

namespace temper::cli {

/// Rebuilds live.json and the timeline unless live.json exists or the run is running. Errors: the
/// log cannot be read, or the files cannot be written.
Status provide_live_file(const std::filesystem::path& run_dir);

}  // namespace temper::cli
