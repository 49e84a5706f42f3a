#include "orchestrator/pipeline/source_rules.hpp"

#include "orchestrator/scheduler/problems/problem_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace temper::orchestrator {
namespace {

using actors::TaskKind;
using actors::TaskSource;

constexpr double kMostSourceWeight = 1e6;

void check_source(TaskKind kind, const std::string& name, const TaskSource& source, Rules& rules) {
  const std::string key = "task.sources." + name;
  rules.require(is_source_name(name),
                {key},
                "the name of a source must be 1 to 64 letters, digits, '-' or '_', since metrics "
                "and files are named by it");
  rules.require(kind != TaskKind::Jsonl || !source.path.empty(),
                {key + ".path", key},
                "required by `task.kind: jsonl`");
  rules.require(kind != TaskKind::Jsonl || !source.digits,
                {key + ".digits"},
                "requires `task.kind: addition`; remove it");
  rules.require(!source.digits || (*source.digits >= 1 && *source.digits <= 9),
                {key + ".digits"},
                fmt::format("must be 1 to 9, found {}", source.digits.value_or(0)));
  rules.require(kind != TaskKind::Addition || source.path.empty(),
                {key + ".path"},
                "requires `task.kind: jsonl`");
  rules.require(source.schedule.empty() || source.weight == 1,
                {key + ".weight", key + ".schedule"},
                "excludes `schedule`, which has the weight of every step; remove one of them");
  for (const auto& [step, weight] : source.schedule) {
    rules.require(weight >= 0 && weight <= kMostSourceWeight,
                  {fmt::format("{}.schedule.{}", key, step), key + ".schedule"},
                  fmt::format("must be 0 to {:g}, found {:g}", kMostSourceWeight, weight));
  }
}

/// Between two steps of any schedule the sum of the weights is linear, so it is zero somewhere only
/// if it is at one of them.
void check_weights(const PipelineConfig& c, Rules& rules) {
  std::vector<ProblemSource> sources;
  std::set<std::uint64_t> steps{0};
  for (const auto& [name, source] : c.task.sources) {
    const auto& weights =
        sources.emplace_back(ProblemSource{.name = name, .stream = name}).weights =
            source.weights_by_step();
    for (const auto& [step, weight] : weights) {
      if (step < c.steps)
        steps.insert(step);
    }
  }
  if (c.steps > 0)
    steps.insert(c.steps - 1);
  for (const std::uint64_t step : steps) {
    const bool any = std::ranges::any_of(
        sources, [&](const ProblemSource& source) { return source.weight(step) > 0; });
    if (!any) {
      return rules.require(
          false,
          {"task.sources"},
          fmt::format("expected a source with a positive weight at every step, but all weights are "
                      "0 at step {}; give one of them a weight there",
                      step));
    }
  }
}

}  // namespace

bool is_source_name(const std::string& name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(kAllowed) == std::string::npos;
}

void check_sources(const PipelineConfig& c, Rules& rules) {
  const actors::TaskConfig& task = c.task;
  const actors::SetAside& aside = task.set_aside;
  for (const auto& [key, rate] : {std::pair("task.set_aside.easy", aside.easy),
                                  std::pair("task.set_aside.hopeless", aside.hopeless)}) {
    rules.require(!rate || (*rate >= 0 && *rate <= 1),
                  {key},
                  fmt::format("must be 0 to 1, found {:g}", rate.value_or(0)));
  }
  rules.require(!aside.easy || !aside.hopeless || *aside.easy > *aside.hopeless,
                {"task.set_aside.easy", "task.set_aside.hopeless"},
                fmt::format("must be above task.set_aside.hopeless ({:g}), found {:g}: otherwise "
                            "every problem is set aside",
                            aside.hopeless.value_or(0),
                            aside.easy.value_or(0)));
  rules.require(task.kind != TaskKind::Jsonl || !task.path.empty() || !task.sources.empty(),
                {"task.path", "task.kind"},
                "required by `task.kind: jsonl`");
  if (task.sources.empty())
    return;
  rules.require(task.path.empty(),
                {"task.path", "task.sources"},
                "excludes `task.sources`; make it one of the sources");
  for (const auto& [name, source] : task.sources)
    check_source(task.kind, name, source, rules);
  if (rules.hold())
    check_weights(c, rules);
}

}  // namespace temper::orchestrator
