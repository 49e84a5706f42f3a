// A server started by Temper with a shell command. It never outlives this process, with all its
// children. Its output is appended to a file beside our own log.
#pragma once

#include "actors/guard/guarded_process.hpp"
#include "actors/server/url.hpp"

#include <filesystem>
#include <optional>

namespace temper::actors {

class ServerProcess {
 public:
  /// `command` may contain {model}, {host} and {port}.
  ServerProcess(std::string command, std::filesystem::path log)
      : command_(std::move(command)), log_(std::move(log)) {}

  /// Stops the current process, if any, and starts a new one. Errors: see GuardedProcess::start();
  /// then no process is running.
  Status start(const std::filesystem::path& model, const Url& place);
  void stop() { process_.reset(); }
  bool is_started() const { return process_.has_value(); }
  /// How the process ended; empty while it runs or if it was never started.
  std::optional<std::string> ended();
  const std::filesystem::path& log() const { return log_; }

 private:
  const std::string command_;
  const std::filesystem::path log_;
  std::optional<GuardedProcess> process_;
};

/// A port of this machine that is currently free. Error: Io.
Result<std::uint16_t> free_port();
/// The log file of the server, beside the file of our stderr: "rollout-0.server.log" for
/// "rollout-0.log". If stderr is not a file: `name`.server.log in the working directory.
std::filesystem::path server_log(const std::string& name);

}  // namespace temper::actors
