// The problems that a run is evaluated on: those that its task holds out, or a file of their own.
#pragma once

#include "actors/task/prompts.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <memory>

namespace temper::orchestrator {

/// What the answers of a run have to be: anything where they are judged by a role of the user's.
actors::AnswerRule answer_rule(const PipelineConfig& config);

/// Its held_out() are the problems of an evaluation. Error: as make_prompt_source(); there are
/// fewer than `evaluation.problems`.
Result<std::unique_ptr<actors::PromptSource>> make_evaluation_source(const PipelineConfig& config);

}  // namespace temper::orchestrator
