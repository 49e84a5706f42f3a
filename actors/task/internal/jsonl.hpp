// A data set: one JSON object per line, in one of two forms,
//
//   {"prompt": "2+2=", "answer": "4"}
//   {"question": "Two and two?", "answer": "2 + 2 = 4, so #### 4"}      (GSM8K)
//
// In the second the answer is what follows the last "####", without commas. A row may have
// `prompt_token_ids` beside its prompt: these are what the engine is given, and the prompt, a text
// or a list of messages, is what whoever judges is given (of messages, their JSON). Other fields
// are carried to whoever judges; blank lines are ignored. A problem is held out by a hash of its
// prompt: the same prompt is always on the same side, whatever else the file holds.
#pragma once

#include "actors/task/prompts.hpp"

#include <string_view>

namespace temper::actors {

/// Longest accepted line, in bytes.
inline constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// The problems of `text`; `name` is what errors call the file. Error: every line that is
/// malformed, or whose answer breaks `rule`, as "name:17: reason", the first twenty of them and how
/// many more.
Result<std::vector<Problem>> parse_jsonl(std::string_view name,
                                         std::string_view text,
                                         AnswerRule rule = AnswerRule::Any);

/// Errors: as parse_jsonl(); a file that cannot be read, has no problem, or none left to train on,
/// unless all are to be held out (1), of which train() is never asked.
Result<std::unique_ptr<PromptSource>> make_jsonl_source(const TaskConfig& task,
                                                        std::uint64_t seed,
                                                        AnswerRule rule);

}  // namespace temper::actors
