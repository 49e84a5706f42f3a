// One process of the pool and the sample it works on. Not thread-safe.
#pragma once

#include "actors/guard/guarded_process.hpp"
#include "actors/task/internal/command_verifier.hpp"

#include <poll.h>

#include <list>
#include <optional>
#include <string>
#include <vector>

namespace temper::actors {

/// Idle -> assign() -> (poll on what add_to_poll() names, then advance())* -> verdict -> Idle.
/// Every call returns at once, but for the milliseconds that starting a process takes.
class CommandSlot {
 public:
  /// `config` outlives the slot.
  explicit CommandSlot(const VerifierConfig& config) : config_(&config) {}

  /// Error: the command cannot be started.
  Status start();

  bool is_idle() const { return !sample_; }
  /// Has a process, or may start one now.
  bool is_ready(Time now) const { return process_ || now >= not_before_; }
  /// The deadline counts from now. Requires: is_idle().
  void assign(std::size_t sample, const Judgement& judgement, Time now);
  std::size_t sample() const { return *sample_; }

  /// Goes on as far as it can. A verdict makes the slot idle again. Requires: !is_idle().
  std::optional<Verdict> advance(Time now);

  /// Drops the sample, and the process that was to judge it.
  void abandon(Time now);

  /// What to wait for, and until when at the latest. Requires: !is_idle().
  void add_to_poll(std::vector<pollfd>& fds) const;
  Time wake_time() const;

 private:
  Status prepare_process(Time now);
  std::optional<std::string> trouble_while_idle();
  void send();
  void receive();
  void drain_errors();
  std::optional<Verdict> read_verdict(Time now);
  std::optional<std::string> trouble_while_talking(Time now);
  std::optional<std::string> how_it_ended();
  Verdict fail(std::string why, Time now);
  void discard_process(Time now);

  const VerifierConfig* config_;

  std::optional<GuardedProcess> process_;
  std::list<GuardedProcess> ending_;  ///< Killed, but not gone yet.
  bool proven_ = false;               ///< This process has answered before.
  bool input_open_ = false;
  bool output_open_ = false;
  bool errors_open_ = false;
  std::string reply_;
  std::string error_text_;  ///< The last part of it.
  std::size_t error_bytes_ = 0;

  Duration pause_{0};    ///< Before the next start, after a process that proved nothing.
  Time not_before_{};    ///< Of the next start.
  std::string trouble_;  ///< Why there is no process.

  std::optional<std::size_t> sample_;
  Time deadline_{};
  std::string request_;
  std::size_t sent_ = 0;
  bool talking_ = false;  ///< The process has been given the sample.
};

}  // namespace temper::actors
