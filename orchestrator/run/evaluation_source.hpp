// The problems on which a run is evaluated: those that its task holds out, or a separate file.
#pragma once

#include "actors/task/prompts.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <memory>

namespace temper::orchestrator {

/// The form of a run's answers; any form if a role of the user judges them.
actors::AnswerRule answer_rule(const PipelineConfig& config);

/// Its held_out() are the problems of an evaluation. Error: as make_prompt_source(); there are
/// fewer than `evaluation.problems`.
Result<std::unique_ptr<actors::PromptSource>> make_evaluation_source(const PipelineConfig& config);

}  // namespace temper::orchestrator
