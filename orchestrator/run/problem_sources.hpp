// The sources of problems of a run, and the problem that the scheduler drew.
#pragma once

#include "actors/task/prompts.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

namespace temper::orchestrator {

/// The plan of a run with these prompts. Error: `task.set_aside` with a source of more than
/// kMostSetAside problems.
Result<ProblemPlan> problem_plan(const PipelineConfig& config, const actors::PromptSource& prompts);
/// Reads the data for it, but renders no chats. Errors: also those of make_prompt_source().
Result<ProblemPlan> read_problem_plan(const PipelineConfig& config);

/// The scheduler's state names each problem that is set aside.
inline constexpr std::uint64_t kMostSetAside = std::uint64_t{1} << 24;

/// The problem of a new group. Without a draw, that of its number.
actors::Problem drawn_problem(const actors::PromptSource& prompts,
                              GroupId group,
                              const std::optional<Draw>& draw);

}  // namespace temper::orchestrator
