// The prompts of a task: the problems of each of its sources, by number. The order in which they
// are visited is a pure function (core/epoch_order.hpp). In a run, the scheduler draws the problem
// of each group (orchestrator/scheduler/problems/), so resuming a run needs nothing from here.
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
  std::string source{};           ///< Name of its source in `task.sources`; empty: none.
  bool operator==(const Problem&) const = default;
};

/// What a verifier requires of the expected answers.
enum class AnswerRule { Any, Text, Number };
AnswerRule answers_for(const VerifierConfig& verifier);

/// A source of training problems.
struct ProblemSet {
  std::string name;            ///< Key of `task.sources`; empty: the task is its only source.
  std::string stream;          ///< Of its order.
  std::uint64_t problems = 0;  ///< Number of training problems.
  std::uint64_t held_out = 0;  ///< Number of held-out problems.
};

class PromptSource {
 public:
  virtual ~PromptSource() = default;
  /// At least one, sorted by name.
  virtual std::vector<ProblemSet> sets() const = 0;
  /// Training problem `number` of a source. Requires: set < sets().size(), and number is less than
  /// the number of its problems.
  virtual Problem problem(std::size_t set, std::uint64_t number) const = 0;
  /// The teacher of each training problem of a source, as an index in PromptOptions::teachers.
  /// Empty: the task has no column of teachers. Requires: set < sets().size().
  virtual std::vector<std::uint8_t> teachers(std::size_t /*set*/) const { return {}; }
  /// Training problem number `index` if the sources alternate. For pretraining and measurements: in
  /// a run, the scheduler draws.
  Problem train(std::uint64_t index) const;
  /// Held-out problem number `index`; problem() never returns it. Those of several sources
  /// alternate (core/alternation.hpp). Repeats beyond held_out_size(). Requires: held_out_size() >
  /// 0.
  virtual Problem held_out(std::uint64_t index) const = 0;
  /// Number of distinct held-out problems; 0 if the task has none.
  virtual std::uint64_t held_out_size() const = 0;
  /// Length of the longest prompt, for comparison with the model's context. Error: a prompt that
  /// cannot be encoded.
  virtual Result<Tokens> longest_prompt(const Tokenizer& tokenizer) const = 0;

 protected:
  PromptSource(const TaskConfig& task, std::uint64_t seed) : seed_(seed), shuffle_(task.shuffle) {}

 private:
  const std::uint64_t seed_;
  const bool shuffle_;
};

/// What the prompts of a task depend on, besides the task itself.
struct PromptOptions {
  AnswerRule rule = AnswerRule::Any;
  std::filesystem::path model{};  ///< Folder with the chat template, for `template: chat`.
  bool render = true;             ///< False: chats stay messages, for a caller that only counts.
  /// The names that `task.teacher_column` may have; empty: the column is not read.
  std::vector<std::string> teachers{};
};

/// The key to which an error belongs, at the beginning of its text, if no chat can be rendered.
inline constexpr std::string_view kTemplateKey = "task.template: ";

/// Errors: NotFound for a missing file; InvalidInput for a file without problems, and for every
/// line that is malformed, whose answer violates the rule, whose teacher is unknown, or whose
/// messages the chat template does not accept ("data.jsonl:17: ..."); kTemplateKey if there is no
/// usable template or renderer.
Result<std::unique_ptr<PromptSource>> make_prompt_source(const TaskConfig& task,
                                                         std::uint64_t seed,
                                                         const PromptOptions& options = {});

}  // namespace temper::actors
