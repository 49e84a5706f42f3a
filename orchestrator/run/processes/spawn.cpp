#include "orchestrator/run/processes/spawn.hpp"

#include "core/file_descriptor.hpp"
#include "core/files.hpp"
#include "core/null_ended.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Our environment with `changes`, as "KEY=value".
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!changes.contains(std::string(text.substr(0, text.find('=')))))
      merged.emplace_back(text);
  }
  for (const auto& [key, value] : changes)
    merged.push_back(fmt::format("{}={}", key, value));
  return merged;
}

/// All that the child needs between fork and exec, prepared before: there it may not allocate.
struct Launch {
  pid_t parent;
  int null_fd;
  int log_fd;
  int report_fd;
  char* const* arguments;
  char* const* environment;
  const cpu_set_t* cores;  ///< Null: those of the parent.
};

[[noreturn]] void give_up(int report_fd) {
  const int error = errno;
  static_cast<void>(!::write(report_fd, &error, sizeof(error)));
  ::_exit(127);
}

/// Runs in the child: async-signal-safe calls only.
[[noreturn]] void become(const Launch& launch) {
  ::setpgid(0, 0);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    give_up(launch.report_fd);
  if (::getppid() != launch.parent)  // It ended before the call above.
    ::_exit(127);
  if (launch.cores != nullptr && ::sched_setaffinity(0, sizeof(cpu_set_t), launch.cores) != 0)
    give_up(launch.report_fd);
  // Slurm sends it to every process of a step; it is for the orchestrator, which asks its workers.
  ::signal(SIGUSR1, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int ignored : {SIGPIPE, SIGINT, SIGTERM, SIGHUP})
    ::signal(ignored, SIG_DFL);  // exec resets handlers, but keeps ignored signals.
  if (::dup2(launch.null_fd, 0) < 0 || ::dup2(launch.log_fd, 1) < 0 || ::dup2(launch.log_fd, 2) < 0)
    give_up(launch.report_fd);
  // Libraries may have opened descriptors without O_CLOEXEC; before Linux 5.11 this does nothing.
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execve(launch.arguments[0], launch.arguments, launch.environment);
  give_up(launch.report_fd);
}

/// errno of the failed call in the child; 0 once its program runs.
int await_exec(int fd) {
  int error = 0;
  for (;;) {
    const ssize_t n = ::read(fd, &error, sizeof(error));
    if (n < 0 && errno == EINTR)
      continue;
    return n == static_cast<ssize_t>(sizeof(error)) ? error : 0;
  }
}

/// It is missing or cannot be a program, as opposed to a lack of processes or memory.
bool is_about_the_program(int error) {
  constexpr std::array kErrors{ENOENT, ENOTDIR, EACCES, ENOEXEC, ELOOP, ENAMETOOLONG, EISDIR};
  return std::ranges::find(kErrors, error) != kErrors.end();
}

}  // namespace

Result<pid_t> spawn(const ChildSpec& spec) {
  if (spec.command.empty())
    return invalid_input(fmt::format("{}: no command to start", spec.name));
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.is_open())
    return io_error(fmt::format("{}: cannot open /dev/null", spec.name), errno);
  auto opened = open_to_write(spec.log, O_APPEND);
  if (!opened)
    return std::move(opened).error().within(fmt::format("{}: cannot open log", spec.name));
  const FileDescriptor log = *std::move(opened);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return io_error(fmt::format("{}: cannot create a pipe", spec.name), errno);
  const FileDescriptor report(ends[0]);
  FileDescriptor report_child(ends[1]);

  std::vector<std::string> arguments = spec.command;
  std::vector<std::string> environment = merged_environment(spec.environment);
  const std::vector<char*> argv = null_ended(arguments);
  const std::vector<char*> envp = null_ended(environment);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const std::uint32_t core : spec.cores)
    CPU_SET(core, &cores);
  const Launch launch{::getpid(),
                      null.get(),
                      log.get(),
                      report_child.get(),
                      argv.data(),
                      envp.data(),
                      spec.cores.empty() ? nullptr : &cores};

  const pid_t pid = ::fork();
  if (pid < 0)
    return io_error(fmt::format("{}: cannot create a process", spec.name), errno);
  if (pid == 0)
    become(launch);
  ::setpgid(pid, pid);  // In both processes, because either may come first.
  report_child.reset();
  if (const int error = await_exec(report.get()); error != 0) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    Error refused =
        io_error(fmt::format("{}: cannot execute {}", spec.name, spec.command[0]), error);
    if (is_about_the_program(error))
      refused.code = ErrorCode::NotFound;
    return refused;
  }
  return pid;
}

std::string log_tail(const std::filesystem::path& log, std::int64_t begin) {
  constexpr std::int64_t kTail = 65536;
  const auto fd = open_to_read(log);
  if (!fd)
    return {};
  const std::int64_t end = ::lseek(fd->get(), 0, SEEK_END);
  if (end < begin)
    begin = 0;  // it was cut meanwhile (RunDir::bound_logs)
  const std::int64_t from = std::max({std::int64_t{0}, begin, end - kTail});
  if (end <= from)
    return {};
  std::string text(static_cast<std::size_t>(end - from), '\0');
  const ssize_t n = ::pread(fd->get(), text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (const auto newline = text.find('\n'); from > begin && newline != std::string::npos)
    text.erase(0, newline + 1);  // Began within a line.
  return text;
}

}  // namespace temper::orchestrator
