#include "actors/guard/guarded_process.hpp"

#include "actors/guard/internal/guard.hpp"
#include "core/exit_text.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace temper::actors {

namespace {

constexpr int kFirstHighFd = 10;  // Above what the guard and the command move to 0, 1, 2 and 3.
constexpr int kStartTimeoutMs = 5000;
constexpr int kEndTimeoutMs = 1000;

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

Result<FileDescriptor> moved_high(FileDescriptor fd) {
  const int high = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstHighFd);
  if (high < 0)
    return io_error("cannot duplicate a descriptor", errno);
  return FileDescriptor(high);
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return io_error("cannot make a pipe", errno);
  FileDescriptor read(ends[0]);
  FileDescriptor write(ends[1]);
  Pipe pipe;
  TEMPER_TRY(pipe.read, moved_high(std::move(read)));
  TEMPER_TRY(pipe.write, moved_high(std::move(write)));
  return pipe;
}

bool is_executable(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

/// The file that `name` means, as a shell would find it.
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

void make_non_blocking(const FileDescriptor& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

/// fork() with every signal blocked in the child, so that no handler of ours runs there.
pid_t fork_quietly() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid != 0) {
    const int why = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = why;
  }
  return pid;
}

/// False: nothing came in time.
bool wait_readable(int fd, int timeout_ms) {
  pollfd p{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&p, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

std::optional<int> read_number(int fd) {
  int number = 0;
  ssize_t size = 0;
  do {
    size = ::read(fd, &number, sizeof(number));
  } while (size < 0 && errno == EINTR);
  if (size != sizeof(number))
    return std::nullopt;
  return number;
}

}  // namespace

Result<GuardedProcess> GuardedProcess::start(const std::vector<std::string>& command) {
  TEMPER_TRY(const std::string executable, find_executable(command.empty() ? "" : command[0]));
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);

  TEMPER_TRY(Pipe input, make_pipe());
  TEMPER_TRY(Pipe output, make_pipe());
  TEMPER_TRY(Pipe errors, make_pipe());
  TEMPER_TRY(Pipe life_line, make_pipe());
  TEMPER_TRY(Pipe status, make_pipe());
  const GuardPlan plan{.executable = executable.c_str(),
                       .arguments = arguments.data(),
                       .environment = ::environ,
                       .input = input.read.get(),
                       .output = output.write.get(),
                       .errors = errors.write.get(),
                       .life_line = life_line.read.get(),
                       .status = status.write.get()};
  const pid_t guard = fork_quietly();
  if (guard == 0)
    run_guard(plan);
  if (guard < 0)
    return io_error("cannot start a process", errno);

  GuardedProcess process;
  process.guard_ = guard;
  process.life_line_ = std::move(life_line.write);
  process.status_ = std::move(status.read);
  process.input_ = std::move(input.write);
  process.output_ = std::move(output.read);
  process.errors_ = std::move(errors.read);
  status.write.reset();
  for (const FileDescriptor* fd :
       {&process.status_, &process.input_, &process.output_, &process.errors_})
    make_non_blocking(*fd);
  if (!wait_readable(process.status_.get(), kStartTimeoutMs))
    return Error{ErrorCode::Timeout, fmt::format("{} did not start in time", executable)};
  const std::optional<int> error = read_number(process.status_.get());
  if (error != 0)
    return io_error(fmt::format("cannot execute {}", executable), error.value_or(ECHILD));
  return process;
}

GuardedProcess::GuardedProcess(GuardedProcess&& other) noexcept
    : guard_(std::exchange(other.guard_, 0)),
      life_line_(std::move(other.life_line_)),
      status_(std::move(other.status_)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      wait_status_(other.wait_status_) {}

GuardedProcess::~GuardedProcess() {
  kill();
  wait_a_second();
}

void GuardedProcess::kill() {
  life_line_.reset();
}

bool GuardedProcess::is_gone() {
  if (guard_ == 0)
    return true;
  const pid_t pid = ::waitpid(guard_, nullptr, WNOHANG);
  if (pid == 0 || (pid < 0 && errno == EINTR))
    return false;
  guard_ = 0;
  read_status();
  return true;
}

void GuardedProcess::read_status() {
  if (!wait_status_)
    wait_status_ = read_number(status_.get());
}

/// The guard closes its end of the status pipe when it exits, and then only.
void GuardedProcess::wait_a_second() {
  if (is_gone())
    return;
  if (wait_readable(status_.get(), kEndTimeoutMs)) {
    read_status();
    if (wait_readable(status_.get(), kEndTimeoutMs))
      ::waitpid(guard_, nullptr, 0);
  }
}

std::optional<std::string> GuardedProcess::how_it_ended() {
  read_status();
  if (!wait_status_)
    return std::nullopt;
  return exit_text(*wait_status_);
}

}  // namespace temper::actors
