// How a server comes to a new version, in two phases. Whoever calls has stopped sending requests.
//
//   pause     what runs ends, with what it has, under the old weights
//   drain     every answer is back, or its connection is closed: none can come any more
//   load      the folder's weights, then their label
//   resume    always, whatever failed before: a server that is left paused is lost to everyone
//   check     the label as the server says it; the canary's log-probs beside the trainer's; and
//             that sampled log-probs are those that it scores
//
// Only after the check does the version count. What fails is tried again from the beginning.
#pragma once

#include "actors/server/server.hpp"

#include <functional>

namespace temper::actors {

/// Waits for the answers to requests until the deadline, then gives them up.
using Drain = std::function<void()>;

/// What a commit took, by phase, and how far the canary was off.
struct CommitReport {
  Duration pause{}, drain{}, load{}, resume{}, check{};
  std::optional<double> canary_distance;
  std::optional<double> sampled_distance;
  int attempts = 0;
};

/// `before`: the canary of the version in use, if there is one. Errors: Unavailable: the server is
/// not there; else what did not fit at the last attempt, and then nobody may rely on its weights.
Status commit_version(Server& server,
                      const ServerVersion& next,
                      const std::optional<Canary>& before,
                      const Drain& drain,
                      CommitReport& report);

/// The same in two halves, of a server that has given its memory back (nothing runs on it, nobody
/// sends to it). First the weights, which are loaded and labelled; the check needs a cache.
Status load_released(Server& server, const ServerVersion& next, CommitReport& report);
/// Then the cache, and the check. Error: nobody may rely on its weights.
Status wake_released(Server& server,
                     const ServerVersion& next,
                     const std::optional<Canary>& before,
                     CommitReport& report);

/// Ends what others left on a server: requests that run, a pause that holds, a sleep.
Status take_over(Server& server);

/// Samples and scores once, whatever comes of it: the first call of either kind may take a server a
/// minute, which compiles then. Error: the server is not there.
Status warm_up(Server& server);

/// The log-probs that the server gave `tokens[from...]` when it sampled them, beside those by which
/// it scores them: their mean distance. None where they are of different distributions, since
/// sampling is not at temperature 1 and top_p 1.
Result<std::optional<double>> sampled_distance(Server& server,
                                               std::span<const std::int32_t> tokens,
                                               std::span<const float> sampled);

}  // namespace temper::actors
