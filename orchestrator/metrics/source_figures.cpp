#include "orchestrator/metrics/source_figures.hpp"

#include <numeric>
#include <utility>

namespace temper::orchestrator {

void SourceCounts::dispatch(GroupId group, const std::optional<Draw>& draw) {
  if (!draw)
    return;
  of_group_[group] = draw->source;
  last_[draw->source] = *draw;
}

void SourceCounts::train(GroupId group, std::span<const double> rewards) {
  const auto it = of_group_.find(group);
  if (it == of_group_.end())
    return;
  Batch& batch = batch_[it->second];
  ++batch.groups;
  batch.responses += rewards.size();
  batch.rewards += std::accumulate(rewards.begin(), rewards.end(), 0.0);
  of_group_.erase(it);
}

std::vector<SourceFigures> SourceCounts::take(const ProblemPlan& plan) {
  auto batches = std::exchange(batch_, {});
  std::vector<SourceFigures> figures;
  const bool shown = plan.sources.size() > 1 || plan.set_aside.easy || plan.set_aside.hopeless;
  for (std::uint32_t k = 0; shown && k < plan.sources.size(); ++k) {
    const std::string& name = plan.sources[k].name;
    const Batch batch = batches[k];
    SourceFigures& f = figures.emplace_back(SourceFigures{
        name.empty() ? "task" : name, batch.groups, batch.responses, batch.rewards, 0, 0});
    if (const auto last = last_.find(k); last != last_.end()) {
      f.epoch = plan.order(k).epoch(last->second.position);
      f.set_aside = last->second.set_aside;
    }
  }
  return figures;
}

}  // namespace temper::orchestrator
