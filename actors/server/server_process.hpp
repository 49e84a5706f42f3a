// A server that we started, from a shell command: it ends with us whatever ends us, with all that
// it started; its output goes to a file beside our own log.
#pragma once

#include "actors/guard/guarded_process.hpp"
#include "actors/server/url.hpp"

#include <filesystem>
#include <optional>

namespace temper::actors {

class ServerProcess {
 public:
  /// `command` may name {model}, {host} and {port}.
  ServerProcess(std::string command, std::filesystem::path log)
      : command_(std::move(command)), log_(std::move(log)) {}

  /// Ends the one there is, and starts it anew.
  Status start(const std::filesystem::path& model, const Url& place);
  void stop() { process_.reset(); }
  bool is_started() const { return process_.has_value(); }
  /// How it ended; none while it runs, or where it was never started.
  std::optional<std::string> ended();
  const std::filesystem::path& log() const { return log_; }

 private:
  const std::string command_;
  const std::filesystem::path log_;
  std::optional<GuardedProcess> process_;
};

/// A port of this machine that is free now.
Result<std::uint16_t> free_port();
/// The file beside the one that stderr goes to, "rollout-0.server.log" for "rollout-0.log"; where
/// stderr goes to no file, `name`.server.log in the folder we are in.
std::filesystem::path server_log(const std::string& name);

}  // namespace temper::actors
