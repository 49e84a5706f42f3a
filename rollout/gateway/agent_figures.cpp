#include "rollout/gateway/agent_figures.hpp"

#include <fmt/format.h>

namespace temper::rollout {

void AgentFigures::add(const EpisodeCounts& of_row, double its_reward) {
  ++episodes;
  rows.turns += of_row.turns;
  rows.forks += of_row.forks;
  rows.sampled += of_row.sampled;
  rows.given += of_row.given;
  rows.dropped += of_row.dropped;
  reward += its_reward;
}

void AgentFigures::tell(const Log& log) const {
  std::string own;
  for (const auto& [name, count] : counts)
    own += fmt::format("{}{}={:g}", own.empty() ? "" : " ", name, count);
  log.info("episodes",
           {{"ended", episodes},
            {"failed", failed},
            {"begun_anew", begun_anew},
            {"turns", rows.turns},
            {"forks", rows.forks},
            {"sampled", rows.sampled},
            {"given", rows.given},
            {"dropped", rows.dropped},
            {"reward", fmt::format("{:.4f}", reward)},
            {"counts", own}});
}

}  // namespace temper::rollout
