#include "actors/task/prompts.hpp"

#include "actors/task/internal/addition.hpp"
#include "actors/task/internal/jsonl.hpp"
#include "actors/task/internal/several_sources.hpp"
#include "actors/task/internal/text_verifiers.hpp"
#include "core/epoch_order.hpp"

namespace temper::actors {

Problem PromptSource::train(std::uint64_t index) const {
  const std::vector<ProblemSet> all = sets();
  const std::size_t set = index % all.size();
  const EpochOrder order{all[set].stream, seed_, all[set].problems, shuffle_};
  return problem(set, order.at(index / all.size()));
}

Result<std::unique_ptr<PromptSource>> make_prompt_source(const TaskConfig& task,
                                                         std::uint64_t seed,
                                                         const PromptOptions& options) {
  if (!task.sources.empty())
    return make_several_sources(task, seed, options);
  return task.kind == TaskKind::Addition ? make_addition_source(task, seed)
                                         : make_jsonl_source(task, seed, options);
}

namespace {

AnswerRule answers_of(const SingleVerifier& verifier) {
  switch (verifier.kind) {
    case VerifierKind::Exact:
      return AnswerRule::Text;
    case VerifierKind::Numeric:
      return AnswerRule::Number;
    case VerifierKind::Regex:
      return verifier.pattern.find(kAnswerInPattern) == std::string::npos ? AnswerRule::Any
                                                                          : AnswerRule::Text;
    case VerifierKind::Command:
    case VerifierKind::Python:
    case VerifierKind::Judge:
    case VerifierKind::Model:
    case VerifierKind::Sum:
      break;
  }
  return AnswerRule::Any;
}

}  // namespace

AnswerRule answers_for(const VerifierConfig& verifier) {
  AnswerRule strictest = AnswerRule::Any;
  for (const auto& [name, term] : terms_of(verifier))
    strictest = std::max(strictest, answers_of(term));
  return strictest;
}

}  // namespace temper::actors
