#include "cli/watch/machine.hpp"

#include "core/files.hpp"

#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

/// The number at index `place` of a space-separated line; 0 if it is no number.
std::int64_t number_at(std::string_view text, std::size_t place) {
  for (; place > 0; --place) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos)
      return 0;
    text.remove_prefix(space + 1);
  }
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Bytes memory_of_run() {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t self = ::getpid();
  std::int64_t pages = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    // "pid (name) state parent ...": the name may contain anything, so parse after its end.
    const auto stat = read_file(entry.path() / "stat");
    if (!stat)
      continue;
    const std::size_t end = stat->rfind(") ");
    if (end == std::string::npos)
      continue;
    if (std::to_string(self) != name && number_at(stat->substr(end + 2), 1) != self)
      continue;
    if (const auto statm = read_file(entry.path() / "statm"))
      pages += number_at(*statm, 1);
  }
  return Bytes(pages * page);
}

Bytes disk_free(const fs::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0)
    return Bytes(INT64_MAX);
  return Bytes(static_cast<std::int64_t>(info.f_bavail * info.f_frsize));
}

Status start_detached(const std::vector<std::string>& words, const fs::path& folder) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (::access(words.front().c_str(), X_OK) != 0 && words.front().find('/') != std::string::npos)
    return io_error("cannot start " + words.front(), errno);
  const pid_t child = ::fork();
  if (child < 0)
    return io_error("cannot start " + words.front(), errno);
  if (child == 0) {  // only async-signal-safe calls: the parent has threads
    ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    ::setsid();
    if (::fork() == 0) {
      if (::chdir(folder.c_str()) == 0)
        ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

}  // namespace temper::cli
