// Switches a server to a new version. The caller has stopped sending requests.
//
//   pause     running requests end with their tokens so far, under the old weights
//   drain     every response has arrived or its connection is closed
//   load      load the folder's weights, then set their label
//   resume    always, whatever failed before: a server that stays paused is useless to everyone
//   check     compare the label that the server reports, the canary's log-probs with the trainer's,
//             and sampled log-probs with scored ones
//
// The version is accepted only after the check. A failure is retried from the beginning.
#pragma once

#include "actors/server/server.hpp"

#include <functional>

namespace temper::actors {

/// Waits for outstanding responses until the deadline, then drops them.
using Drain = std::function<void()>;

/// Duration of each phase of a commit, and the distances measured by the check.
struct CommitReport {
  Duration pause{}, drain{}, load{}, resume{}, check{};
  std::optional<double> canary_distance;
  std::optional<double> sampled_distance;
  int attempts = 0;
};

/// `before`: canary of the version in use, if any. Errors: Unavailable if the server is gone;
/// otherwise the failed check of the last attempt, after which the server's weights must not be
/// used.
Status commit_version(Server& server,
                      const ServerVersion& next,
                      const std::optional<Canary>& before,
                      const Drain& drain,
                      CommitReport& report);

/// The same in two steps for a server that has released its memory (no requests are running or
/// sent). First: load and label the weights; the check needs a KV cache. Errors: Unavailable if the
/// server is gone; otherwise the failure of the last attempt.
Status load_released(Server& server, const ServerVersion& next, CommitReport& report);
/// Second: allocate the cache and check. On error the server's weights must not be used.
Status wake_released(Server& server,
                     const ServerVersion& next,
                     const std::optional<Canary>& before,
                     CommitReport& report);

/// Clears the state that others left on a server: running requests, a pause, a sleep. Errors: those
/// of Server::ask() if the server cannot be woken or resumed; a failed abort is only logged.
Status take_over(Server& server);

/// Samples and scores once and ignores the result, because the first call of either kind may take a
/// minute while the server compiles. Error: the server is gone.
Status warm_up(Server& server);

/// Mean distance between the log-probs that the server returned for the last of `tokens`
/// while sampling and those that it scores. Empty if the two are not comparable, because sampling
/// is not at temperature 1 and top_p 1. Errors: those of Server::score(); Corrupt if scores are
/// missing. Requires: `tokens` ends with the sampled tokens and has at least one before them.
Result<std::optional<double>> sampled_distance(Server& server,
                                               std::span<const std::int32_t> tokens,
                                               std::span<const float> sampled);

}  // namespace temper::actors
