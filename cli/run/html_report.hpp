// `temper report RUN --html`: the page of a run as one file that needs no server and no network,
// with the summary, the newest certificates and the configuration.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string>

namespace temper::cli {

/// Errors: the folder holds no run, its log cannot be read.
Result<std::string> html_report(const std::filesystem::path& run_dir);

}  // namespace temper::cli
