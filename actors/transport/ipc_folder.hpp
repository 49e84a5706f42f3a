// Where the sockets of `transport.kind: ipc` are: a private folder in TMPDIR for each run.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace temper::actors {

/// In the folder of a run.
inline constexpr std::string_view kIpcSocket = "orchestrator";

/// Error InvalidInput: TMPDIR is too long for a socket in a new TemporaryFolder below it.
Status check_ipc_folder();
/// The same of the folder itself.
Status check_ipc_path(const std::filesystem::path& socket);

}  // namespace temper::actors
