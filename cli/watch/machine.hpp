// Memory and disk space of a run on this machine, and detached child processes.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::cli {

/// Resident memory of this process and its children; shared pages count once per process.
Bytes memory_of_run();
/// Bytes that the user can still write below `folder`; the maximum value if unknown.
Bytes disk_free(const std::filesystem::path& folder);

/// Starts a program as a daemon with working directory `folder`; nothing waits for it. Error: the
/// program cannot be started.
Status start_detached(const std::vector<std::string>& words, const std::filesystem::path& folder);

}  // namespace temper::cli
