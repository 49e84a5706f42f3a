#include "orchestrator/run/problem_sources.hpp"

#include "orchestrator/pipeline/teachers.hpp"
#include "orchestrator/run/evaluation_source.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {
namespace {

std::map<std::uint64_t, double> weights_of(const actors::TaskConfig& task,
                                           const std::string& name) {
  const auto source = task.sources.find(name);
  return source == task.sources.end() ? std::map<std::uint64_t, double>{{0, 1.0}}
                                      : source->second.weights_by_step();
}

}  // namespace

Result<ProblemPlan> read_problem_plan(const PipelineConfig& config) {
  actors::PromptOptions options = prompt_options(config, {});
  options.render = false;
  TEMPER_TRY(const auto prompts, actors::make_prompt_source(config.task, config.seed, options));
  return problem_plan(config, *prompts);
}

Result<ProblemPlan> problem_plan(const PipelineConfig& config,
                                 const actors::PromptSource& prompts) {
  const actors::TaskConfig& task = config.task;
  ProblemPlan plan;
  plan.seed = config.seed;
  plan.shuffle = task.shuffle;
  plan.set_aside = {task.set_aside.easy,
                    task.set_aside.hopeless,
                    config.evaluation.pass,
                    static_cast<std::uint64_t>(task.set_aside.epochs)};
  for (const actors::ProblemSet& set : prompts.sets()) {
    if (task.set_aside.is_on() && set.problems > kMostSetAside) {
      return invalid_input(fmt::format(
          "task.set_aside: expected at most {} problems in each source, found {}{}; remove "
          "task.set_aside, or use fewer",
          kMostSetAside,
          set.problems,
          set.name.empty() ? "" : " in " + set.name));
    }
    plan.sources.push_back({set.name,
                            set.stream,
                            set.problems,
                            weights_of(task, set.name),
                            config.evaluation.path.empty() ? set.held_out : 0});
  }
  plan.teachers = teachers_of_sources(config, plan.sources);
  for (std::size_t k = 0; plan.teachers && k < plan.sources.size(); ++k) {
    if (std::vector<std::uint8_t>& own = plan.teachers->of_problems[k]; own.empty())
      own = prompts.teachers(k);
  }
  return plan;
}

actors::Problem drawn_problem(const actors::PromptSource& prompts,
                              GroupId group,
                              const std::optional<Draw>& draw) {
  return draw ? prompts.problem(draw->source, draw->problem) : prompts.train(group.value());
}

}  // namespace temper::orchestrator
