// One process of the agent program: writes lines to it, reads lines from it, and restarts it when
// it ends. Not thread-safe; no call blocks.
#pragma once

#include "actors/guard/guarded_process.hpp"
#include "core/log.hpp"
#include "rollout/agent_config.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::rollout::internal {

class AgentProcess {
 public:
  /// Both must outlive this object.
  AgentProcess(const AgentConfig& config, const Log& log) : config_(&config), log_(&log) {}

  /// Error: the program cannot be started.
  Status start();
  bool is_there() const { return process_.has_value(); }
  /// Queues a line. Requires: is_there().
  void say(std::string_view line);
  /// Reads and writes without blocking; returns the complete lines that arrived. Its stderr goes to
  /// the log.
  std::vector<std::string> advance();
  /// Why the process ended, once; it may be restarted then. A process that sends invalid lines is
  /// stopped by end().
  std::optional<std::string> ended();
  void end(std::string why);

 private:
  void read_errors();

  const AgentConfig* config_;
  const Log* log_;
  std::optional<actors::GuardedProcess> process_;
  std::string to_write_, read_, errors_;
  std::string why_;
};

}  // namespace temper::rollout::internal
