// Only async-signal-safe calls in this file: it runs in the fork of a process with threads.
#include "actors/guard/internal/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>

namespace temper::actors {

namespace {

constexpr timespec kMillisecond{0, 1'000'000};
constexpr timespec kUsagePeriod{0, 100'000'000};

void close_from(unsigned first) {
  if (::close_range(first, ~0U, 0) == 0)
    return;
  const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
  for (auto fd = static_cast<int>(first); fd < most; ++fd)
    ::close(fd);
}

void write_number(int fd, int number) {
  while (::write(fd, &number, sizeof(number)) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void run_command(const GuardPlan& plan, int exec_failed, pid_t guard) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool own_namespaces =
      plan.confine.kind == SandboxKind::Namespaces;  // cannot see its parent
  if (::getppid() != (own_namespaces ? 0 : guard))
    ::_exit(127);
  ::dup2(plan.input, 0);
  ::dup2(plan.output, 1);
  ::dup2(plan.errors, 2);
  ::dup3(exec_failed, 3, O_CLOEXEC);
  close_from(4);
  for (int number = 1; number < NSIG; ++number)
    ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int refused = confine_self(plan.confine);
  if (refused == 0)
    ::execve(plan.executable, plan.arguments, plan.environment);
  write_number(3, refused != 0 ? refused : errno);
  ::_exit(127);
}

/// Kills our direct children, including inherited orphans. Returns false if the kernel does not
/// list them.
bool kill_children() {
  const int fd = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  char text[4096];  // "12 345 "; the rest is read in a later pass.
  const ssize_t size = ::read(fd, text, sizeof(text));
  ::close(fd);
  pid_t pid = 0;
  for (ssize_t i = 0; i < size; ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      pid = pid * 10 + (text[i] - '0');
      continue;
    }
    if (pid > 0)
      ::kill(pid, SIGKILL);
    pid = 0;
  }
  return true;
}

struct CommandExit {
  bool command = false;
  bool all = false;
  int wait_status = 0;
};

void reap(pid_t command, CommandExit& ended) {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid == command) {
      ended.command = true;
      ended.wait_status = status;
    }
    ended.all = pid < 0 && errno == ECHILD;
    if (pid <= 0)
      return;
  }
}

/// The limit that the command exceeds; 0: none.
int excess(const ConfinePlan& plan) {
  const DescendantUsage usage = usage_below(::getpid(), plan.memory);
  if (usage.processes > kMostProcesses)
    return kStartedTooMany;
  return usage.memory > plan.memory ? kTookTooMuchMemory : 0;
}

/// Waits until the command ends, the lifeline closes or a limit is exceeded. Returns the exceeded
/// limit or 0. `wake` lets SIGCHLD in.
int watch(pid_t command, const ConfinePlan& plan, const sigset_t& wake, CommandExit& ended) {
  const timespec* const period = plan.kind == SandboxKind::None ? nullptr : &kUsagePeriod;
  for (;;) {
    reap(command, ended);
    if (ended.command)
      return 0;
    pollfd life{0, POLLIN, 0};
    if (::ppoll(&life, 1, period, &wake) > 0)
      return 0;
    if (const int why = period != nullptr ? excess(plan) : 0; why != 0)
      return why;
  }
}

void kill_all(pid_t command, const sigset_t& wake, CommandExit& ended) {
  constexpr int kBlindPasses = 1000;
  ::kill(-command, SIGKILL);
  for (int blind = 0; blind < kBlindPasses;) {
    reap(command, ended);
    if (ended.all)
      return;
    if (!kill_children())
      ++blind;
    ::ppoll(nullptr, 0, &kMillisecond, &wake);
  }
}

void on_child(int) {}

}  // namespace

void run_guard(const GuardPlan& plan) {
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "temper-guard");
  struct sigaction action {};
  action.sa_handler = on_child;
  ::sigaction(SIGCHLD, &action, nullptr);
  sigset_t wake;
  ::sigfillset(&wake);
  ::sigdelset(&wake, SIGCHLD);

  int exec_pipe[2] = {-1, -1};
  int error = ::pipe2(exec_pipe, O_CLOEXEC) == 0 ? 0 : errno;
  const int exec_failed = ::fcntl(exec_pipe[1], F_DUPFD_CLOEXEC, kFirstHighFd);
  ::close(exec_pipe[1]);
  const pid_t guard = ::getpid();
  const pid_t command = error == 0 ? fork_confined(plan.confine) : -1;
  if (command == 0)
    run_command(plan, exec_failed, guard);
  if (command < 0) {
    write_number(plan.status, error != 0 ? error : errno);
    ::_exit(0);
  }
  ::setpgid(command, command);
  ::close(exec_failed);
  while (::read(exec_pipe[0], &error, sizeof(error)) < 0 && errno == EINTR) {
  }
  ::close(exec_pipe[0]);
  ::dup2(plan.life_line, 0);
  ::dup2(plan.status, 1);
  close_from(2);  // Includes the other end of the lifeline.
  write_number(1, error);

  CommandExit ended;
  const int why = error == 0 ? watch(command, plan.confine, wake, ended) : 0;
  kill_all(command, wake, ended);
  if (error == 0)
    write_number(1, ended.wait_status | why);
  ::_exit(0);
}

}  // namespace temper::actors
