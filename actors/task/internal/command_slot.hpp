// One process of the pool and the sample that it is judging. Not thread-safe.
#pragma once

#include "actors/guard/guarded_process.hpp"
#include "actors/task/internal/command_verifier.hpp"

#include <poll.h>

#include <list>
#include <optional>
#include <string>
#include <vector>

namespace temper::actors {

/// Idle -> assign() -> (poll the descriptors of add_to_poll(), then advance())* -> verdict -> Idle.
/// No call blocks, except for the milliseconds that starting a process takes.
class CommandSlot {
 public:
  /// `config` must outlive the slot.
  explicit CommandSlot(const SingleVerifier& config) : config_(&config) {}

  /// Error: the command cannot be started.
  Status start();

  bool is_idle() const { return !sample_; }
  /// True if it has a process or may start one now.
  bool is_ready(Time now) const { return process_ || now >= not_before_; }
  /// Starts judging the sample; the deadline counts from `now`. Requires: is_idle().
  void assign(std::size_t sample, const JudgeRequest& request, Time now);
  std::size_t sample() const { return *sample_; }

  /// Makes as much progress as possible without blocking. A verdict makes the slot idle again.
  /// Requires: !is_idle().
  std::optional<Verdict> advance(Time now);

  /// Drops the sample and its process.
  void abandon(Time now);

  /// The descriptors to poll, and the latest time to call advance(). Requires: !is_idle().
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

  const SingleVerifier* config_;

  std::optional<GuardedProcess> process_;
  std::list<GuardedProcess> ending_;  ///< Killed processes that have not ended yet.
  bool proven_ = false;               ///< This process has given a valid reply before.
  bool input_open_ = false;
  bool output_open_ = false;
  bool errors_open_ = false;
  std::string reply_;
  std::string error_text_;  ///< The end of its stderr output.
  std::size_t error_bytes_ = 0;

  Duration pause_{0};    ///< Delay before the next start after a process that never replied.
  Time not_before_{};    ///< Earliest time of the next start.
  std::string trouble_;  ///< Why there is no process.

  std::optional<std::size_t> sample_;
  Time deadline_{};
  std::string request_;
  std::size_t sent_ = 0;
  bool talking_ = false;  ///< The sample has been sent to the process.
};

}  // namespace temper::actors
