// The stream of prompts of a task: prompt number i is a pure function of (task, seed, i), so the
// stream has no state to store and resuming a run needs only the number of the next prompt.
#pragma once

#include "actors/task/task_config.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/result.hpp"

#include <memory>
#include <string>
#include <vector>

namespace temper::actors {

struct Problem {
  std::string prompt;
  std::string answer;
  std::string columns{};          ///< What else its row holds, as a JSON object; empty: nothing.
  std::vector<TokenId> tokens{};  ///< Of the prompt, where its row has them; empty: to be encoded.
  bool operator==(const Problem&) const = default;
};

/// What a verifier needs of the answers that it compares responses with.
enum class AnswerRule { Any, Text, Number };
AnswerRule answers_for(const VerifierConfig& verifier);

class PromptSource {
 public:
  virtual ~PromptSource() = default;
  /// Training problem number `index`; jsonl data is reshuffled every epoch.
  virtual Problem train(std::uint64_t index) const = 0;
  /// Held-out problem number `index`; never among train()'s.
  /// Beyond held_out_size() they repeat. Requires: held_out_size() > 0.
  virtual Problem held_out(std::uint64_t index) const = 0;
  /// Distinct held-out problems; 0 where the task keeps none.
  virtual std::uint64_t held_out_size() const = 0;
  /// Longest prompt, to check against the model's context. Error: one that cannot be encoded.
  virtual Result<Tokens> longest_prompt(const Tokenizer& tokenizer) const = 0;
};

/// Errors: a file that does not exist or has no problem; every line that is malformed, or whose
/// answer breaks `rule`, by its number ("data.jsonl:17: ...").
Result<std::unique_ptr<PromptSource>> make_prompt_source(const TaskConfig& task,
                                                         std::uint64_t seed,
                                                         AnswerRule rule = AnswerRule::Any);

}  // namespace temper::actors
