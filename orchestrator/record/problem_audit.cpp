#include "orchestrator/record/problem_audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {

ProblemAudit::Violations ProblemAudit::dispatch(const command::Dispatch& c, std::uint64_t step) {
  Violations found;
  if (c.draw.has_value() == plan_.sources.empty()) {
    found.push_back(fmt::format("group {} has {} problem, but the run draws {}",
                                c.group,
                                c.draw ? "a" : "no",
                                plan_.sources.empty() ? "none" : "one for each group"));
  }
  if (!c.draw || plan_.sources.empty())
    return found;
  if (c.draw->source >= plan_.sources.size()) {
    found.push_back(fmt::format("group {} has a problem of source {}, which the run does not have",
                                c.group,
                                c.draw->source));
    return found;
  }
  if (sources_.empty()) {
    sources_.resize(plan_.sources.size());
    if (sources_.size() == 1)
      sources_.front().next = c.group.value();  // in a run of an earlier build, not the first
  }
  check_share(c, step, found);
  check_order(c, found);
  return found;
}

/// While the weights stay the same, a source is never a whole group away from its share. A change
/// of weights moves what a source is owed by less than a group in all.
void ProblemAudit::check_share(const command::Dispatch& c, std::uint64_t step, Violations& found) {
  double sum = 0;
  for (const ProblemSource& source : plan_.sources)
    sum += source.weight(step);
  for (std::size_t k = 0; sum > 0 && k < sources_.size(); ++k)
    sources_[k].owed += plan_.sources[k].weight(step) / sum;
  Source& source = sources_[c.draw->source];
  source.owed -= 1;
  if (sum > 0 && plan_.sources[c.draw->source].weight(step) <= 0)
    found.push_back(fmt::format("group {} has a problem of a source without weight", c.group));
  if (source.owed <= -2 || source.owed >= 2) {
    found.push_back(fmt::format("group {}: its source is {:.2f} groups away from its share",
                                c.group,
                                std::abs(source.owed)));
  }
}

void ProblemAudit::check_order(const command::Dispatch& c, Violations& found) {
  const Draw& draw = *c.draw;
  const EpochOrder order = plan_.order(draw.source);
  Source& source = sources_[draw.source];
  const auto is_aside = [&](std::uint64_t position) {
    const auto until = source.aside.find(order.at(position));
    return until != source.aside.end() && order.epoch(position) < until->second;
  };
  if (draw.position < source.next || draw.position - source.next > order.size) {
    found.push_back(
        fmt::format("group {} has the problem at position {} of its source, where {} "
                    "is next",
                    c.group,
                    draw.position,
                    source.next));
  } else {
    for (std::uint64_t position = source.next; position < draw.position; ++position) {
      if (!is_aside(position))
        found.push_back(
            fmt::format("problem {} is left out, but is not set aside", order.at(position)));
    }
    if (is_aside(draw.position) && draw.position - source.next < order.size)
      found.push_back(fmt::format("group {} has a problem that is set aside", c.group));
  }
  if (draw.problem != order.at(draw.position)) {
    found.push_back(fmt::format("group {} has problem {}, but problem {} is at its position",
                                c.group,
                                draw.problem,
                                order.at(draw.position)));
  }
  source.next = draw.position + 1;
  source.aside.erase(draw.problem);
  outstanding_[c.group.value()] = {draw.source, draw.problem, order.epoch(draw.position)};
  if (draw.set_aside != source.aside.size()) {
    found.push_back(fmt::format("group {}: {} problems are said to be set aside, found {}",
                                c.group,
                                draw.set_aside,
                                source.aside.size()));
  }
}

std::optional<std::uint32_t> ProblemAudit::teacher(std::uint64_t group) const {
  const auto it = outstanding_.find(group);
  if (!plan_.teachers || it == outstanding_.end() ||
      it->second.source >= plan_.teachers->of_problems.size())
    return std::nullopt;
  const std::vector<std::uint8_t>& all = plan_.teachers->of_problems[it->second.source];
  const std::size_t place = all.size() == 1 ? 0 : it->second.number;
  return place < all.size() && all[place] < plan_.teachers->names.size()
             ? std::optional<std::uint32_t>(all[place])
             : std::nullopt;
}

void ProblemAudit::leave(std::uint64_t group, const std::optional<std::vector<double>>& rewards) {
  const auto it = outstanding_.find(group);
  if (it == outstanding_.end())
    return;
  const Problem problem = it->second;
  outstanding_.erase(it);
  if (!rewards)
    return;
  const SetAsideRule& rule = plan_.set_aside;
  const auto passed =
      std::ranges::count_if(*rewards, [&](double reward) { return reward >= rule.pass; });
  const double rate =
      static_cast<double>(passed) / static_cast<double>(std::max<std::size_t>(1, rewards->size()));
  auto& aside = sources_[problem.source].aside;
  if ((rule.easy && rate >= *rule.easy) || (rule.hopeless && rate <= *rule.hopeless))
    aside[problem.number] = problem.epoch + 1 + rule.epochs;
  else
    aside.erase(problem.number);
}

}  // namespace temper::orchestrator
