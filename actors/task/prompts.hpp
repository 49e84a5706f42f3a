// The prompts of a task. Prompt number i is a pure function of (task, seed, i), so there is no
// state to store, and resuming a run needs only the number of the next prompt.
#pragma once

#include "actors/task/task_config.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

struct Problem {
  std::string prompt;
  std::string answer;
  std::string columns{};          ///< Other columns of its row, as a JSON object; empty if there
                                  ///< are none.
  std::vector<TokenId> tokens{};  ///< Token ids of the prompt, if its row has them; empty: encode
                                  ///< the prompt.
  bool operator==(const Problem&) const = default;
};

/// What a verifier requires of the expected answers.
enum class AnswerRule { Any, Text, Number };
AnswerRule answers_for(const VerifierConfig& verifier);

class PromptSource {
 public:
  virtual ~PromptSource() = default;
  /// Training problem number `index`; jsonl data is reshuffled every epoch.
  virtual Problem train(std::uint64_t index) const = 0;
  /// Held-out problem number `index`; train() never returns it. Repeats beyond held_out_size().
  /// Requires: held_out_size() > 0.
  virtual Problem held_out(std::uint64_t index) const = 0;
  /// Number of distinct held-out problems; 0 if the task has none.
  virtual std::uint64_t held_out_size() const = 0;
  /// Length of the longest prompt, for comparison with the model's context. Error: a prompt that
  /// cannot be encoded.
  virtual Result<Tokens> longest_prompt(const Tokenizer& tokenizer) const = 0;
};

/// What the prompts of a task depend on, besides the task itself.
struct PromptOptions {
  AnswerRule rule = AnswerRule::Any;
  std::filesystem::path model{};  ///< Folder with the chat template, for `template: chat`.
};

/// The key to which an error belongs, at the beginning of its text, if no chat can be rendered.
inline constexpr std::string_view kTemplateKey = "task.template: ";

/// Errors: NotFound for a missing file; InvalidInput for a file without problems, and for every
/// line that is malformed, whose answer violates the rule, or whose messages the chat template does
/// not accept ("data.jsonl:17: ..."); kTemplateKey if there is no usable template or renderer.
Result<std::unique_ptr<PromptSource>> make_prompt_source(const TaskConfig& task,
                                                         std::uint64_t seed,
                                                         const PromptOptions& options = {});

}  // namespace temper::actors
