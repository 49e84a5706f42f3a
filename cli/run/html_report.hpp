// `temper report RUN --html`: the web page of a run as one self-contained HTML file, with the
// summary, the newest certificates and the configuration.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string>

namespace temper::cli {

/// Returns the HTML. Errors: the folder holds no run, or its log cannot be read.
Result<std::string> html_report(const std::filesystem::path& run_dir);

}  // namespace temper::cli
