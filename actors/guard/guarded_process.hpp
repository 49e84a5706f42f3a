// A foreign program that cannot outlive this process, whatever ends it, nor can anything it starts.
//
// Between us and the command stands a small guard process:
//
//   this process --(life line: a pipe whose write end only we hold)--> guard --> command --> ...
//
// When the life line closes (we let go of it, or we died, SIGKILL included) or the command ends,
// the guard kills the command's process group and every process that was orphaned below it, setsid
// or not (it is their subreaper), then ends too. If the guard itself is killed, the kernel kills
// the command. The guard is in a session of its own, so a signal to our group does not reach it.
//
// The command has the descriptors 0, 1, 2 and no other. Ours are non-blocking. Linux only.
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
  /// Runs `command` (executable, looked up in PATH, and its arguments) in our working directory,
  /// with the variables that `sandbox` gives it. Returns once it was executed. Errors: an
  /// executable that is not there or cannot be executed; a sandbox that cannot be made; no
  /// processes or descriptors left.
  static Result<GuardedProcess> start(const std::vector<std::string>& command,
                                      const Sandbox& sandbox = {});

  GuardedProcess(GuardedProcess&& other) noexcept;
  GuardedProcess& operator=(GuardedProcess&&) noexcept = delete;
  /// Kills, and waits for the guard for up to a second.
  ~GuardedProcess();

  int input() const { return input_.get(); }    ///< Its stdin.
  int output() const { return output_.get(); }  ///< Its stdout.
  int errors() const { return errors_.get(); }  ///< Its stderr.
  /// Readable when the command and everything it started have ended.
  int ended() const { return status_.get(); }

  /// Has the command and all it started killed; returns at once.
  void kill();
  /// True once they all are gone. Never blocks.
  bool is_gone();
  /// How the command ended: "exit code 3", "killed by signal 11 (Segmentation fault)", or which
  /// bound of its sandbox it passed. None while it runs or if nobody knows.
  std::optional<std::string> how_it_ended();

 private:
  GuardedProcess() = default;
  void read_status();
  void wait_a_second();

  pid_t guard_ = 0;  ///< 0: none, or reaped.
  FileDescriptor life_line_;
  FileDescriptor
      status_;  ///< From the guard: errno of the start, then how it ended, then end of file.
  FileDescriptor input_;
  FileDescriptor output_;
  FileDescriptor errors_;
  Bytes memory_{};  ///< That it may hold.
  std::optional<int> wait_status_;
};

}  // namespace temper::actors
