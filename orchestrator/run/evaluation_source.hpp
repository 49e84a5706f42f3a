// The problems on which a run is evaluated: those that its task holds out, or a separate file.
#pragma once

#include "actors/task/prompts.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <filesystem>
#include <memory>

namespace temper::orchestrator {

/// The form of a run's answers; any form if a role of the user judges them.
actors::AnswerRule answer_rule(const PipelineConfig& config);

/// What the prompts of a run depend on. `base`: its model folder; empty: model.path.
actors::PromptOptions prompt_options(const PipelineConfig& config,
                                     const std::filesystem::path& base);

/// Its held_out() are the problems of an evaluation. `base`: as of prompt_options(). Error: as
/// make_prompt_source(); there are fewer than `evaluation.problems`.
Result<std::unique_ptr<actors::PromptSource>> make_evaluation_source(
    const PipelineConfig& config, const std::filesystem::path& base);

}  // namespace temper::orchestrator
