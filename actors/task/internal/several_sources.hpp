// A task with several sources of problems (`task.sources`), each a task of its own.
#pragma once

#include "actors/task/prompts.hpp"

namespace temper::actors {

/// The held-out problems of the sources alternate until one has no more. Error: as
/// make_prompt_source() for the first source that has one. Requires: there are sources.
Result<std::unique_ptr<PromptSource>> make_several_sources(const TaskConfig& task,
                                                           std::uint64_t seed,
                                                           const PromptOptions& options);

}  // namespace temper::actors
