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

namespace {

/// The key of a source.
std::string key_of(const ProblemSource& source) {
  return source.name.empty() ? std::string("task") : fmt::format("task.sources.{}", source.name);
}

/// Requires: the sources are the same.
std::string teacher_difference(const ProblemPlan& before, const ProblemPlan& after) {
  if (!before.teachers && !after.teachers)
    return {};
  const TeacherPlan was = before.teachers.value_or(TeacherPlan());
  const TeacherPlan is = after.teachers.value_or(TeacherPlan());
  if (was.names != is.names) {
    return fmt::format("reference.teachers: the run started with [{}], found [{}]",
                       fmt::join(was.names, ", "),
                       fmt::join(is.names, ", "));
  }
  for (std::size_t k = 0; k < before.sources.size(); ++k) {
    if (was.of_problems[k] != is.of_problems[k]) {
      return fmt::format("{}: the run started with other teachers of its problems",
                         key_of(after.sources[k]));
    }
  }
  return {};
}

}  // namespace

std::string problem_difference(const ProblemPlan& before, const ProblemPlan& after) {
  if (before.sources.size() != after.sources.size()) {
    return fmt::format("task.sources: the run started with {} sources, found {}",
                       before.sources.size(),
                       after.sources.size());
  }
  for (std::size_t k = 0; k < before.sources.size(); ++k) {
    const ProblemSource &was = before.sources[k], &is = after.sources[k];
    const std::string key = key_of(is);
    if (was.name != is.name)
      return fmt::format("{}: the run started with the source `{}` in its place", key, was.name);
    if (was.problems != is.problems) {
      return fmt::format("{}: the run started with {} training problems, found {}",
                         key,
                         was.problems,
                         is.problems);
    }
  }
  return teacher_difference(before, after);
}

}  // namespace temper::orchestrator
