// One process of the agent program: lines to it, lines from it, started again when it ends. Not
// thread-safe; no call waits.
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
  /// Both outlive it.
  AgentProcess(const AgentConfig& config, const Log& log) : config_(&config), log_(&log) {}

  /// Error: the program cannot be started.
  Status start();
  bool is_there() const { return process_.has_value(); }
  /// A line more to be written. Requires: is_there().
  void say(std::string_view line);
  /// Reads and writes what can be; the whole lines that came. What it says on its stderr goes to
  /// the log.
  std::vector<std::string> advance();
  /// Why it is gone, once; it may be started again then. A process that talks nonsense is ended by
  /// end().
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
