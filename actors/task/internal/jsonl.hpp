// A data set: one JSON object per line, in one of two forms,
//
//   {"prompt": "2+2=", "answer": "4"}
//   {"question": "Two and two?", "answer": "2 + 2 = 4, so #### 4"}      (GSM8K)
//
// In the second form the answer is the text after the last "####", without commas. A row may also
// have `prompt_token_ids`: then the engine gets these, and the verifier gets the prompt, which may
// be text or a list of messages (passed on as JSON). Other fields are passed to the verifier. Blank
// lines are ignored. A hash of the prompt decides whether a problem is held out, so this does not
// depend on the other rows of the file.
#pragma once

#include "actors/task/prompts.hpp"

#include <string_view>

namespace temper::actors {

/// Longest accepted line, in bytes.
inline constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// Parses the problems of `text`; errors call the file `name`. Error InvalidInput: lists the first
/// twenty lines that are malformed or whose answer violates `rule`, as "name:17: reason", and the
/// number of further ones.
Result<std::vector<Problem>> parse_jsonl(std::string_view name,
                                         std::string_view text,
                                         AnswerRule rule = AnswerRule::Any);

/// Errors: as parse_jsonl(); also a file that cannot be read, has no problems, or has no training
/// problems left, unless all are held out (held_out: 1). In that case train() must not be called.
Result<std::unique_ptr<PromptSource>> make_jsonl_source(const TaskConfig& task,
                                                        std::uint64_t seed,
                                                        AnswerRule rule);

}  // namespace temper::actors
