#include "orchestrator/run/evaluation_source.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

actors::AnswerRule answer_rule(const PipelineConfig& config) {
  return config.reward.engine.kind == actors::EngineKind::Native
             ? actors::answers_for(config.verifier)
             : actors::AnswerRule::Any;
}

actors::PromptOptions prompt_options(const PipelineConfig& config,
                                     const std::filesystem::path& base) {
  actors::PromptOptions options{answer_rule(config),
                                base.empty() ? std::filesystem::path(config.model.path) : base};
  for (const auto& [name, teacher] : config.reference.teachers)
    options.teachers.push_back(name);
  return options;
}

Result<std::unique_ptr<actors::PromptSource>> make_evaluation_source(
    const PipelineConfig& config, const std::filesystem::path& base) {
  const EvaluationSection& e = config.evaluation;
  actors::TaskConfig task = config.task;
  if (!e.path.empty()) {
    task.kind = actors::TaskKind::Jsonl;
    task.path = e.path;
    task.teacher_column.clear();
    task.sources.clear();
    task.held_out = 1;
  }
  TEMPER_TRY(auto source,
             actors::make_prompt_source(task, config.seed, prompt_options(config, base)));
  const std::uint64_t there = source->held_out_size();
  if (std::cmp_less(there, e.problems)) {
    return invalid_input(
        fmt::format("evaluation.problems is {}, but {}; set it to at most {}{}",
                    e.problems,
                    e.path.empty() ? fmt::format("the task holds out {} (task.held_out)", there)
                                   : fmt::format("{} has {}", e.path, there),
                    there,
                    there == 0 ? ", which needs a larger task.held_out, or evaluation.path" : ""));
  }
  return source;
}

}  // namespace temper::orchestrator
