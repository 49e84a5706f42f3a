// What became of the episodes of an engine.
#pragma once

#include "core/log.hpp"
#include "rollout/gateway/episode_row.hpp"

#include <map>
#include <string>

namespace temper::rollout {

/// Since the beginning.
struct AgentFigures {
  std::size_t episodes = 0;  ///< That ended well.
  std::size_t failed = 0;
  std::size_t begun_anew = 0;            ///< Withdrawn or interrupted.
  EpisodeCounts rows;                    ///< Of the episodes that ended well.
  double reward = 0;                     ///< Sum, as agents gave it.
  std::map<std::string, double> counts;  ///< What agents counted themselves: tool calls, for one.

  /// An episode that ended well.
  void add(const EpisodeCounts& of_row, double its_reward);
  /// In a line of the log.
  void tell(const Log& log) const;
};

}  // namespace temper::rollout
