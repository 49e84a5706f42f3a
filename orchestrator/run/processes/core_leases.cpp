#include "orchestrator/run/processes/core_leases.hpp"

#include "core/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// For all users of the machine: a lock needs a descriptor that may write.
FileDescriptor open_shared(const fs::path& path) {
  constexpr mode_t kForAll = 0666;
  // Made by another user it must not be opened with O_CREAT (fs.protected_regular).
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.is_open())
    return file;
  file = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForAll));
  if (file.is_open())
    static_cast<void>(::fchmod(file.get(), kForAll));
  return file;
}

struct flock byte_of(std::uint32_t core) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = core;
  lock.l_len = 1;
  return lock;
}

bool lock(int file, std::uint32_t core) {
  struct flock wanted = byte_of(core);
  return ::fcntl(file, F_SETLK, &wanted) == 0;
}

/// None: no process holds it any more.
std::optional<pid_t> holder_of(int file, std::uint32_t core) {
  struct flock found = byte_of(core);
  if (::fcntl(file, F_GETLK, &found) != 0 || found.l_type == F_UNLCK)
    return std::nullopt;
  return std::max<pid_t>(found.l_pid, 0);
}

/// "temper run a.yaml"; empty where it cannot be seen.
std::string command_of(pid_t process) {
  constexpr std::size_t kLongest = 80;
  auto text = read_file(fmt::format("/proc/{}/cmdline", process));
  if (!text || text->empty())
    return {};
  std::string command = *std::move(text);
  if (command.back() == '\0')
    command.pop_back();
  const std::size_t program = command.substr(0, command.find('\0')).rfind('/');
  if (program != std::string::npos)
    command.erase(0, program + 1);
  for (char& c : command) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  }
  return command.substr(0, kLongest);
}

}  // namespace

CoreLeases CoreLeases::take(std::span<const std::uint32_t> usable,
                            std::size_t count,
                            const fs::path& file) {
  CoreLeases leases;
  leases.file_ = open_shared(file);
  const int fd = leases.file_.get();
  std::vector<std::uint32_t> taken;
  for (const std::uint32_t core : usable) {
    if (leases.cores_.size() == count)
      break;
    if (!leases.file_.is_open() || lock(fd, core))
      leases.cores_.push_back(core);
    else
      taken.push_back(core);
  }
  for (const std::uint32_t core : taken) {
    if (leases.cores_.size() == count)
      break;
    leases.cores_.push_back(core);
    const auto holder = holder_of(fd, core);
    if (!holder)
      continue;
    const auto known = std::ranges::find(leases.others_, *holder, &Other::process);
    if (known != leases.others_.end())
      known->cores.push_back(core);
    else
      leases.others_.push_back({*holder, {core}});
  }
  std::ranges::sort(leases.cores_);
  return leases;
}

std::string to_text(const std::vector<CoreLeases::Other>& others) {
  std::string text;
  for (const CoreLeases::Other& other : others) {
    const std::string command = other.process > 0 ? command_of(other.process) : "";
    text += fmt::format("{}core{} {} {} also used by {}{}",
                        text.empty() ? "" : ", ",
                        other.cores.size() > 1 ? "s" : "",
                        fmt::join(other.cores, ", "),
                        other.cores.size() > 1 ? "are" : "is",
                        other.process > 0 ? fmt::format("process {}", other.process)
                                          : std::string("a run of another container"),
                        command.empty() ? "" : fmt::format(" ({})", command));
  }
  return text.empty() ? text : text + ": each run is slower for it";
}

}  // namespace temper::orchestrator
