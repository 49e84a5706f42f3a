// Starts, watches and stops the processes of a run, and leaves none behind.
//
// Each child has its own process group, so a Ctrl-C of the terminal does not reach it, and its own
// children end with it. The kernel kills it when the thread that started it ends. start() is
// therefore called on a thread that lives as long as the run: the main thread.
// All calls and callbacks on the thread that runs the Asio loop.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace temper::orchestrator {

struct ChildSpec {
  std::string name;                                ///< Actor slot, e.g. "rollout-0"; unique.
  std::vector<std::string> command;                ///< Path of the program, then its arguments.
  std::map<std::string, std::string> environment;  ///< Added to, or replacing, our own.
  std::filesystem::path log;                       ///< stdout and stderr are appended here.
  std::vector<std::uint32_t> cores{};  ///< That it may use; empty: those of this process.
};

/// The exit code of a worker that would fail again in the same way: EX_CONFIG of sysexits.h.
inline constexpr int kPermanentExit = 78;

struct ChildExit {
  std::string name;
  std::int64_t pid = 0;
  bool success = false;    ///< Exit code 0.
  bool permanent = false;  ///< Exit code kPermanentExit.
  std::string status;      ///< "exit code 3" or "killed by signal 9 (Killed)".
  std::string log_tail;    ///< Its last lines of output, without those of earlier children.
};

class Supervisor {
 public:
  /// How exits are noticed: a pidfd per child, or SIGCHLD (kernels before 5.3, some sandboxes).
  enum class Notice { Pidfd, Signal };

  /// `io` outlives this. `on_exit` is called once for every child that start() returned, except
  /// those that the destructor ends; it may call anything here.
  Supervisor(boost::asio::io_context& io,
             std::function<void(const ChildExit&)> on_exit,
             Notice notice = Notice::Pidfd);
  /// Kills every child and waits until none is left.
  ~Supervisor();

  /// The process id. Errors: the name is in use, the program cannot be executed, or the log cannot
  /// be opened.
  Result<std::int64_t> start(const ChildSpec& spec);

  /// SIGTERM now to the child, SIGKILL after `grace` to all it started. No effect on a child that
  /// is gone.
  void stop(const std::string& name, Duration grace);
  void stop_all(Duration grace);
  /// SIGKILL now, to the child and all it started.
  void kill(const std::string& name);
  /// To the child and all of its group; without effect if it is not running.
  void signal(const std::string& name, int number);

  std::size_t running() const;
  bool is_running(const std::string& name) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace temper::orchestrator
