#include "actors/task/prompts.hpp"

#include "actors/task/internal/addition.hpp"
#include "actors/task/internal/jsonl.hpp"

namespace temper::actors {

Result<std::unique_ptr<PromptSource>> make_prompt_source(const TaskConfig& task,
                                                         std::uint64_t seed) {
  return task.kind == TaskKind::Addition ? make_addition_source(task, seed)
                                         : make_jsonl_source(task, seed);
}

}  // namespace temper::actors
