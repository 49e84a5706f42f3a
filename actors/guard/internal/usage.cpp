// Only async-signal-safe calls in this file: it runs in the fork of a process with threads.
#include "actors/guard/internal/usage.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

namespace temper::actors {
namespace {

/// Builds paths such as "/proc/12/task/34/children" without heap memory.
class Path {
 public:
  Path& operator/(std::string_view part) {
    add("/");
    add(part);
    return *this;
  }
  Path& operator/(pid_t pid) {
    char digits[16];
    std::size_t n = sizeof digits;
    do {
      digits[--n] = static_cast<char>('0' + pid % 10);
      pid /= 10;
    } while (pid > 0);
    return *this / std::string_view(digits + n, sizeof digits - n);
  }
  const char* text() const { return text_; }

 private:
  void add(std::string_view part) {
    const std::size_t n = part.size() < sizeof text_ - 1 - size_ ? part.size() : 0;
    std::memcpy(text_ + size_, part.data(), n);
    size_ += n;
    text_[size_] = '\0';
  }
  char text_[96] = "";
  std::size_t size_ = 0;
};

/// The beginning of a file in /proc; empty if it cannot be read.
template <std::size_t N>
std::string_view read_start(const Path& path, char (&buffer)[N]) {
  const int fd = ::open(path.text(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return {};
  std::size_t size = 0;
  for (ssize_t n = 1; n > 0 && size<N; size += n> 0 ? static_cast<std::size_t>(n) : 0)
    n = ::read(fd, buffer + size, N - size);
  ::close(fd);
  return {buffer, size};
}

/// Removes everything up to and including the first number from `text` and returns the number; -1
/// if there is none.
std::int64_t take_number(std::string_view& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!text.empty() && !is_digit(text.front()))
    text.remove_prefix(1);
  if (text.empty())
    return -1;
  std::int64_t number = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1))
    number = number * 10 + (text.front() - '0');
  return number;
}

struct Processes {
  pid_t pids[kMostProcesses + 1];
  std::size_t size = 0;

  bool is_full() const { return size == kMostProcesses + 1; }
  void add_listed(std::string_view text) {
    for (std::int64_t pid = 0; !is_full() && (pid = take_number(text)) > 0;)
      pids[size++] = static_cast<pid_t>(pid);
  }
};

void add_children(pid_t pid, Processes& to) {
  struct Entry {  // linux_dirent64
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t length;
    std::uint8_t type;
    char name[1];
  };
  const int folder =
      ::open((Path() / "proc" / pid / "task").text(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  alignas(Entry) char entries[2048];
  char children[4096];
  for (long got = 0;
       !to.is_full() && (got = ::syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const Entry*>(entries + at);
      std::string_view name(entry->name);
      const std::int64_t thread = take_number(name);
      at += entry->length;
      if (thread > 0) {
        to.add_listed(read_start(
            Path() / "proc" / pid / "task" / static_cast<pid_t>(thread) / "children", children));
      }
    }
  }
  ::close(folder);
}

/// Resident memory including file mappings.
std::int64_t resident(pid_t pid) {
  char buffer[128];
  std::string_view text = read_start(Path() / "proc" / pid / "statm", buffer);
  take_number(text);
  const std::int64_t pages = take_number(text);
  return pages < 0 ? 0 : pages * ::sysconf(_SC_PAGESIZE);
}

/// Proportional share of memory that is not file-backed; all resident memory if the kernel does not
/// report it.
std::int64_t held(pid_t pid) {
  char buffer[2048];
  std::string_view text = read_start(Path() / "proc" / pid / "smaps_rollup", buffer);
  std::int64_t sum = 0;
  bool known = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
    if (!line.starts_with("Pss_Anon:") && !line.starts_with("Pss_Shmem:") &&
        !line.starts_with("SwapPss:"))
      continue;
    known = known || line.starts_with("Pss_Anon:");
    sum += take_number(line) * 1024;
  }
  return known ? sum : resident(pid);
}

}  // namespace

DescendantUsage usage_below(pid_t root, std::int64_t enough) {
  Processes all;
  add_children(root, all);
  for (std::size_t i = 0; i < all.size && !all.is_full(); ++i)
    add_children(all.pids[i], all);
  DescendantUsage usage{all.size, 0};
  for (std::size_t i = 0; i < all.size; ++i)
    usage.memory += resident(all.pids[i]);
  if (usage.memory <= enough)
    return usage;
  usage.memory = 0;
  for (std::size_t i = 0; i < all.size; ++i)
    usage.memory += held(all.pids[i]);
  return usage;
}

}  // namespace temper::actors
