// What this machine says of a run, and what it is asked to start.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::cli {

/// Resident memory of this process and of those that it started, pages that they share counted for
/// each.
Bytes memory_of_run();
/// What its user may still write there; the most there is where nobody knows.
Bytes disk_free(const std::filesystem::path& folder);

/// Starts a program that is nobody's child afterwards; nothing waits for it. Its folder is
/// `folder`. Error: it cannot be started.
Status start_detached(const std::vector<std::string>& words, const std::filesystem::path& folder);

}  // namespace temper::cli
