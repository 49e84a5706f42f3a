#include "orchestrator/scheduler/problems/problem_plan.hpp"

#include "core/alternation.hpp"

#include <fmt/format.h>

#include <iterator>

namespace temper::orchestrator {

double ProblemSource::weight(std::uint64_t step) const {
  const auto after = weights.lower_bound(step);
  if (after == weights.end())
    return weights.empty() ? 1 : weights.rbegin()->second;
  if (after == weights.begin() || after->first == step)
    return after->second;
  const auto before = std::prev(after);
  const double way =
      static_cast<double>(step - before->first) / static_cast<double>(after->first - before->first);
  return before->second + way * (after->second - before->second);
}

std::vector<std::uint32_t> evaluated_sources(const ProblemPlan& plan, std::uint64_t problems) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t size = 0;
  for (const ProblemSource& source : plan.sources) {
    sizes.push_back(source.held_out);
    size += source.held_out;
  }
  std::vector<std::uint32_t> sources;
  if (sizes.size() < 2 || size < problems)
    return sources;
  sources.reserve(problems);
  for (std::uint64_t p = 0; p < problems; ++p)
    sources.push_back(static_cast<std::uint32_t>(alternating_item(sizes, p).set));
  return sources;
}

std::string problem_difference(const ProblemPlan& before, const ProblemPlan& after) {
  if (before.sources.size() != after.sources.size()) {
    return fmt::format("task.sources: the run started with {} sources, found {}",
                       before.sources.size(),
                       after.sources.size());
  }
  for (std::size_t k = 0; k < before.sources.size(); ++k) {
    const ProblemSource &was = before.sources[k], &is = after.sources[k];
    const std::string key =
        is.name.empty() ? std::string("task") : fmt::format("task.sources.{}", is.name);
    if (was.name != is.name)
      return fmt::format("{}: the run started with the source `{}` in its place", key, was.name);
    if (was.problems != is.problems) {
      return fmt::format("{}: the run started with {} training problems, found {}",
                         key,
                         was.problems,
                         is.problems);
    }
  }
  return {};
}

}  // namespace temper::orchestrator
