#include "actors/transport/ipc_folder.hpp"

#include "core/temporary_folder.hpp"

#include <fmt/format.h>
#include <sys/un.h>

namespace temper::actors {
namespace {

/// The path and its NUL must fit into sun_path.
constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

}  // namespace

Status check_ipc_path(const std::filesystem::path& socket) {
  const std::size_t length = socket.native().size();
  if (length <= kLongestPath)
    return {};
  const std::size_t base = temporary_base().native().size();
  const std::size_t excess = length - kLongestPath;
  return invalid_input(fmt::format(
      "TMPDIR is {} characters long, expected at most {}: the path of a UNIX socket holds at most "
      "{}, and {} has {}; set TMPDIR to a shorter folder, such as /tmp",
      base,
      base > excess ? base - excess : 0,
      kLongestPath,
      socket.string(),
      length));
}

Status check_ipc_folder() {
  return check_ipc_path(temporary_base() / "temper-XXXXXX" / kIpcSocket);
}

}  // namespace temper::actors
