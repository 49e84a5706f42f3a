// Statistics of the episodes of an engine.
#pragma once

#include "core/log.hpp"
#include "rollout/gateway/episode_row.hpp"

#include <map>
#include <string>

namespace temper::rollout {

/// Totals since the start.
struct AgentFigures {
  std::size_t episodes = 0;  ///< Finished with success.
  std::size_t failed = 0;
  std::size_t begun_anew = 0;            ///< Withdrawn or interrupted.
  EpisodeCounts rows;                    ///< Of the successful episodes.
  double reward = 0;                     ///< Sum of the rewards that agents reported.
  std::map<std::string, double> counts;  ///< Counts that agents reported, such as tool calls.

  /// Adds a successful episode.
  void add(const EpisodeCounts& of_row, double its_reward);
  /// Writes them as a log line.
  void tell(const Log& log) const;
};

}  // namespace temper::rollout
