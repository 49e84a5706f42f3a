// Folder of the sockets for `transport.kind: ipc`: a private folder in TMPDIR for each run.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace temper::actors {

/// File name of the socket in that folder.
inline constexpr std::string_view kIpcSocket = "orchestrator";

/// Error InvalidInput if TMPDIR is too long for a socket in a new TemporaryFolder.
Status check_ipc_folder();
/// The same check and error for the path of a socket.
Status check_ipc_path(const std::filesystem::path& socket);

}  // namespace temper::actors
