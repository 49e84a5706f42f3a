#include "actors/task/prompts.hpp"

#include "actors/task/addition.hpp"

namespace temper::actors {

Result<std::unique_ptr<PromptSource>> make_prompt_source(const TaskConfig& task,
                                                         std::uint64_t seed) {
  switch (task.kind) {
    case TaskKind::Addition:
      return make_addition(task, seed);
    case TaskKind::Jsonl:
      return Error{ErrorCode::Unsupported, "jsonl is not read yet"};
  }
  return Error{ErrorCode::Internal, "unknown kind of task"};
}

}  // namespace temper::actors
