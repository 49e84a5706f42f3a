#include "actors/guard/executable.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

bool is_executable(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> find_executable(const std::string& name) {
  if (name.empty())
    return invalid_input("the command is empty");
  if (name.find('/') != std::string::npos) {
    if (is_executable(name))
      return name;
    const int why = ::access(name.c_str(), X_OK) == 0 ? EACCES : errno;
    return io_error(fmt::format("cannot execute {}", name), why);
  }
  const char* const set = ::getenv("PATH");
  for (std::string_view rest = set != nullptr ? set : "/usr/local/bin:/usr/bin:/bin";;) {
    const std::size_t end = rest.find(':');
    const std::string folder(rest.substr(0, end));
    std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable(path))
      return path;
    if (end == std::string_view::npos)
      return Error{ErrorCode::NotFound, fmt::format("no executable `{}` in PATH", name)};
    rest.remove_prefix(end + 1);
  }
}

std::string default_python() {
  const char* const named = std::getenv("TEMPER_PYTHON");
  if (named != nullptr && *named != 0)
    return named;
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const bool installed = fs::exists(folder.parent_path() / "pyvenv.cfg", ignored);
  return installed ? (folder / "python3").string() : "python3";
}

}  // namespace temper::actors
