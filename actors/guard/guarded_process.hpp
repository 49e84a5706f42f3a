// A child program that cannot outlive this process, however this process ends, and neither can any
// process that the child starts.
//
// A small guard process sits between this process and the command:
//
//   this process --(lifeline: a pipe whose write end only we hold)--> guard --> command --> ...
//
// When the lifeline closes (we closed it, or we died, even by SIGKILL) or the command ends, the
// guard kills the command's process group and all orphaned descendants, setsid or not (it is their
// subreaper), and exits. If the guard itself is killed, the kernel kills the command. The guard has
// its own session, so signals to our process group do not reach it.
//
// The command has only the descriptors 0, 1 and 2. Our ends are non-blocking. Linux only.
#pragma once

#include "actors/guard/sandbox.hpp"
#include "core/file_descriptor.hpp"
#include "core/result.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace temper::actors {

class GuardedProcess {
 public:
  /// Runs `command` (an executable, looked up in PATH, and its arguments) in our working directory,
  /// with the environment that `sandbox` allows. Returns once the command has been executed.
  /// Errors: the executable is missing or cannot be executed; the sandbox cannot be created; no
  /// processes or descriptors are left.
  static Result<GuardedProcess> start(const std::vector<std::string>& command,
                                      const Sandbox& sandbox = {});

  GuardedProcess(GuardedProcess&& other) noexcept;
  GuardedProcess& operator=(GuardedProcess&&) noexcept = delete;
  /// Kills the command, and waits up to one second for the guard.
  ~GuardedProcess();

  int input() const { return input_.get(); }    ///< Its stdin.
  int output() const { return output_.get(); }  ///< Its stdout.
  int errors() const { return errors_.get(); }  ///< Its stderr.
  /// Readable when the command and everything it started have ended.
  int ended() const { return status_.get(); }

  /// Kills the command and everything that it started; returns at once.
  void kill();
  /// True once all these processes have ended. Never blocks.
  bool is_gone();
  /// How the command ended: "exit code 3", "killed by signal 11 (Segmentation fault)", or the
  /// sandbox limit that it exceeded. Empty while it runs, or if unknown.
  std::optional<std::string> how_it_ended();

 private:
  GuardedProcess() = default;
  void read_status();
  void wait_a_second();

  pid_t guard_ = 0;  ///< 0 if there is none or it was reaped.
  FileDescriptor life_line_;
  FileDescriptor status_;  ///< Pipe from the guard: errno of the start, then the wait status, then
                           ///< end of file.
  FileDescriptor input_;
  FileDescriptor output_;
  FileDescriptor errors_;
  Bytes memory_{};  ///< Memory limit.
  std::optional<int> wait_status_;
};

}  // namespace temper::actors
