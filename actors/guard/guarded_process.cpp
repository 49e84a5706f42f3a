#include "actors/guard/guarded_process.hpp"

#include "actors/guard/executable.hpp"
#include "actors/guard/internal/guard.hpp"
#include "core/exit_text.hpp"
#include "core/null_ended.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace temper::actors {

namespace {

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
    return io_error("cannot create a pipe", errno);
  FileDescriptor read(ends[0]);
  FileDescriptor write(ends[1]);
  Pipe pipe;
  TEMPER_TRY(pipe.read, moved_high(std::move(read)));
  TEMPER_TRY(pipe.write, moved_high(std::move(write)));
  return pipe;
}

bool is_given(std::string_view entry, const Sandbox& sandbox) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::find(kGivenVariables.begin(), kGivenVariables.end(), name) != kGivenVariables.end() ||
         std::find(sandbox.environment.begin(), sandbox.environment.end(), name) !=
             sandbox.environment.end();
}

/// The part of our environment that `sandbox` passes on, as "KEY=value".
std::vector<std::string> environment_of(const Sandbox& sandbox) {
  std::vector<std::string> given;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool elsewhere = sandbox.kind == SandboxKind::Namespaces && text.starts_with("TMPDIR=");
    if (is_given(text, sandbox) && !elsewhere)
      given.emplace_back(text);
  }
  return given;
}

/// Folders that appear empty to the command.
std::vector<std::string> covered_folders(const Sandbox& sandbox) {
  std::vector<std::string> covered{"/tmp"};
  const char* const own = ::getenv("TMPDIR");
  if (own != nullptr && own[0] == '/' && !std::string_view(own).starts_with("/tmp"))
    covered.emplace_back(own);
  covered.insert(covered.end(), sandbox.hidden.begin(), sandbox.hidden.end());
  return covered;
}

/// Error InvalidInput: a part of the command is in a folder that the sandbox hides.
Status check_visible(const std::vector<std::string>& command,
                     const std::vector<std::string>& covered) {
  namespace fs = std::filesystem;
  for (const std::string& word : command) {
    std::error_code not_there;
    const fs::path path = fs::canonical(word, not_there);
    if (not_there)
      continue;
    for (const std::string& folder : covered) {
      const fs::path real = fs::weakly_canonical(folder, not_there);
      const auto [end, ignored] = std::mismatch(real.begin(), real.end(), path.begin(), path.end());
      if (end == real.end()) {
        return invalid_input(fmt::format(
            "{} is below {}, which is empty in the sandbox; move it elsewhere", word, folder));
      }
    }
  }
  return {};
}

/// Includes threads. Larger than kMostProcesses, whose check reports why the command was killed.
constexpr std::int64_t kMostTasks = 4096;

/// Before Linux 5.14 a process limit counts all processes of the user, in all namespaces.
bool counts_tasks_by_namespace() {
  utsname system{};
  int major = 0, minor = 0;
  if (::uname(&system) != 0 || std::sscanf(system.release, "%d.%d", &major, &minor) != 2)
    return false;
  return major > 5 || (major == 5 && minor >= 14);
}

/// Owns the data that a ConfinePlan points to.
class Confinement {
 public:
  /// Error InvalidInput: a part of the command is in a folder that the sandbox hides.
  static Result<Confinement> prepare(const std::string& executable,
                                     std::vector<std::string> command,
                                     const Sandbox& sandbox) {
    Confinement c;
    c.kind_ = sandbox.kind;
    c.memory_ = sandbox.memory;
    c.folders_ = covered_folders(sandbox);
    if (sandbox.kind == SandboxKind::Namespaces) {
      command.front() = executable;
      TEMPER_TRY_STATUS(check_visible(command, c.folders_));
    }
    std::error_code no_folder;
    c.working_folder_ = std::filesystem::current_path(no_folder).string();
    c.user_map_ = fmt::format("65534 {} 1\n", ::geteuid());
    c.group_map_ = fmt::format("65534 {} 1\n", ::getegid());
    return c;
  }
  /// Valid until this object is moved or destroyed.
  ConfinePlan plan() const {
    covered_.clear();
    for (const std::string& folder : folders_)
      covered_.push_back(folder.c_str());
    covered_.push_back(nullptr);
    return {.kind = kind_,
            .memory = memory_.count(),
            .covered = covered_.data(),
            .working_folder = working_folder_.c_str(),
            .user_map = user_map_.c_str(),
            .group_map = group_map_.c_str(),
            .tasks = counts_tasks_by_namespace() ? kMostTasks : 0};
  }

 private:
  SandboxKind kind_ = SandboxKind::None;
  Bytes memory_;
  std::vector<std::string> folders_;
  mutable std::vector<const char*> covered_;
  std::string working_folder_, user_map_, group_map_;
};

Error not_executed(const std::string& executable, const Sandbox& sandbox, int number) {
  if (number <= kErrnoMask)
    return io_error(fmt::format("cannot execute {}", executable), number);
  return {ErrorCode::Unsupported,
          fmt::format("cannot execute {} in a sandbox (verifier.sandbox: {}): {}",
                      executable,
                      name_of(sandbox.kind),
                      confine_error(number))};
}

void make_non_blocking(const FileDescriptor& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

/// fork() with every signal blocked in the child, so that none of our handlers runs there.
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

/// Returns false on timeout.
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

Result<GuardedProcess> GuardedProcess::start(const std::vector<std::string>& command,
                                             const Sandbox& sandbox) {
  TEMPER_TRY(const std::string executable, find_executable(command.empty() ? "" : command[0]));
  std::vector<std::string> words = command;
  const std::vector<char*> arguments = null_ended(words);
  std::vector<std::string> variables = environment_of(sandbox);
  const std::vector<char*> environment = null_ended(variables);
  TEMPER_TRY(const Confinement confinement, Confinement::prepare(executable, command, sandbox));

  TEMPER_TRY(Pipe input, make_pipe());
  TEMPER_TRY(Pipe output, make_pipe());
  TEMPER_TRY(Pipe errors, make_pipe());
  TEMPER_TRY(Pipe life_line, make_pipe());
  TEMPER_TRY(Pipe status, make_pipe());
  const GuardPlan plan{.executable = executable.c_str(),
                       .arguments = arguments.data(),
                       .environment = environment.data(),
                       .input = input.read.get(),
                       .output = output.write.get(),
                       .errors = errors.write.get(),
                       .life_line = life_line.read.get(),
                       .status = status.write.get(),
                       .confine = confinement.plan()};
  const pid_t guard = fork_quietly();
  if (guard == 0)
    run_guard(plan);
  if (guard < 0)
    return io_error("cannot start a process", errno);

  GuardedProcess process;
  process.guard_ = guard;
  process.memory_ = sandbox.memory;
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
  const int error = read_number(process.status_.get()).value_or(ECHILD);
  if (error != 0)
    return not_executed(executable, sandbox, error);
  return process;
}

GuardedProcess::GuardedProcess(GuardedProcess&& other) noexcept
    : guard_(std::exchange(other.guard_, 0)),
      life_line_(std::move(other.life_line_)),
      status_(std::move(other.status_)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      memory_(other.memory_),
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

/// Waits for the guard: it closes its end of the status pipe only when it exits.
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
  if ((*wait_status_ & kTookTooMuchMemory) != 0)
    return fmt::format("killed: it used more than {} (verifier.memory)", to_text(memory_));
  if ((*wait_status_ & kStartedTooMany) != 0)
    return fmt::format("killed: it had more than {} processes", kMostProcesses);
  return exit_text(*wait_status_);
}

}  // namespace temper::actors
