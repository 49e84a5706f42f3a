#include "orchestrator/run/processes/supervisor.hpp"

#include "actors/asio/asio.hpp"
#include "core/exit_text.hpp"
#include "orchestrator/run/processes/spawn.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <system_error>

namespace temper::orchestrator {
namespace {

namespace asio = boost::asio;

struct Child {
  Child(asio::io_context& io, std::string n, std::filesystem::path l)
      : name(std::move(n)), log(std::move(l)), pidfd(io), deadline(io) {}

  std::string name;
  std::filesystem::path log;
  std::int64_t log_begin = 0;
  pid_t pid = 0;
  asio::posix::stream_descriptor pidfd;
  asio::steady_timer deadline;
};

/// The child and all that it started and that stayed in its group.
void signal_group(const Child& child, int signal) {
  ::kill(-child.pid, signal);
}

}  // namespace

struct Supervisor::Impl : std::enable_shared_from_this<Impl> {
  using Children = std::map<std::string, std::unique_ptr<Child>>;

  Impl(asio::io_context& loop, std::function<void(const ChildExit&)> callback, Notice how)
      : io(loop), on_exit(std::move(callback)), notice(how), signals(loop) {
    // If inherited from our parent, it would make the kernel discard exit statuses.
    struct sigaction current {};
    if (::sigaction(SIGCHLD, nullptr, &current) == 0 && current.sa_handler == SIG_IGN)
      ::signal(SIGCHLD, SIG_DFL);
  }

  void watch(Child& child) {
    if (notice == Notice::Pidfd) {
      const long fd = ::syscall(SYS_pidfd_open, child.pid, 0U);
      if (fd >= 0) {
        child.pidfd.assign(static_cast<int>(fd));
        child.pidfd.async_wait(child.pidfd.wait_read,
                               [self = weak_from_this(), name = child.name](const auto& error) {
                                 if (const auto impl = self.lock(); impl && !error)
                                   impl->reap_if_ended(name);
                               });
        return;
      }
    }
    watch_signals();
  }

  void watch_signals() {
    if (!watching_signals) {
      watching_signals = true;
      signals.add(SIGCHLD);
      await_signal();
    }
    // An exit before the handler was there made no signal for it.
    asio::post(io, [self = weak_from_this()] {
      if (const auto impl = self.lock())
        impl->reap_all_ended();
    });
  }

  void await_signal() {
    signals.async_wait([self = weak_from_this()](const auto& error, int) {
      const auto impl = self.lock();
      if (!impl || error)
        return;
      impl->await_signal();
      impl->reap_all_ended();
    });
  }

  void reap_all_ended() {
    std::vector<std::string> names;
    for (const auto& [name, child] : children)
      names.push_back(name);
    for (const std::string& name : names)
      reap_if_ended(name);
  }

  /// Calls on_exit if the child has ended.
  void reap_if_ended(const std::string& name) {
    const auto it = children.find(name);
    if (it == children.end())
      return;
    siginfo_t info{};
    const auto id = static_cast<id_t>(it->second->pid);
    if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      return;
    const std::unique_ptr<Child> child = std::move(it->second);
    children.erase(it);
    signal_group(*child, SIGKILL);  // Before reaping: until then nobody else can get the id.
    ::waitid(P_PID, id, &info, WEXITED);
    on_exit({.name = child->name,
             .pid = child->pid,
             .success = info.si_code == CLD_EXITED && info.si_status == 0,
             .permanent = info.si_code == CLD_EXITED && info.si_status == kPermanentExit,
             .status = exit_text(info),
             .log_tail = log_tail(child->log, child->log_begin)});
  }

  void stop(Child& child, Duration grace) {
    ::kill(child.pid, SIGTERM);  // A child that ends in order ends its own helpers.
    child.deadline.expires_after(grace);
    child.deadline.async_wait(
        [self = weak_from_this(), name = child.name, pid = child.pid](const auto& error) {
          const auto impl = self.lock();
          if (!impl || error)
            return;
          const auto it = impl->children.find(name);
          if (it != impl->children.end() && it->second->pid == pid)
            signal_group(*it->second, SIGKILL);
        });
  }

  void kill_all_and_wait() {
    for (const auto& [name, child] : children)
      signal_group(*child, SIGKILL);
    for (const auto& [name, child] : children) {
      siginfo_t info{};
      while (::waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED) != 0 &&
             errno == EINTR) {
      }
    }
    children.clear();
  }

  asio::io_context& io;
  std::function<void(const ChildExit&)> on_exit;
  const Notice notice;
  asio::signal_set signals;
  bool watching_signals = false;
  Children children;
};

Supervisor::Supervisor(asio::io_context& io,
                       std::function<void(const ChildExit&)> on_exit,
                       Notice notice)
    : impl_(std::make_shared<Impl>(io, std::move(on_exit), notice)) {}

Supervisor::~Supervisor() {
  impl_->kill_all_and_wait();
}

Result<std::int64_t> Supervisor::start(const ChildSpec& spec) {
  if (impl_->children.contains(spec.name))
    return invalid_input(fmt::format("{} is running already", spec.name));
  auto child = std::make_unique<Child>(impl_->io, spec.name, spec.log);
  std::error_code no_log_yet;
  const auto size = std::filesystem::file_size(spec.log, no_log_yet);
  child->log_begin = no_log_yet ? 0 : static_cast<std::int64_t>(size);
  TEMPER_TRY(child->pid, spawn(spec));
  Child& started = *child;
  impl_->children.emplace(spec.name, std::move(child));
  impl_->watch(started);
  return started.pid;
}

void Supervisor::stop(const std::string& name, Duration grace) {
  if (const auto it = impl_->children.find(name); it != impl_->children.end())
    impl_->stop(*it->second, grace);
}

void Supervisor::stop_all(Duration grace) {
  for (const auto& [name, child] : impl_->children)
    impl_->stop(*child, grace);
}

void Supervisor::kill(const std::string& name) {
  if (const auto it = impl_->children.find(name); it != impl_->children.end())
    signal_group(*it->second, SIGKILL);
}

void Supervisor::signal(const std::string& name, int number) {
  if (const auto it = impl_->children.find(name); it != impl_->children.end())
    signal_group(*it->second, number);
}

std::size_t Supervisor::running() const {
  return impl_->children.size();
}

bool Supervisor::is_running(const std::string& name) const {
  return impl_->children.contains(name);
}

}  // namespace temper::orchestrator
