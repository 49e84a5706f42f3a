// The result of a comparison: differences of log-probabilities, equal texts, and the verdict.
#pragma once

#include "core/describe.hpp"
#include "orchestrator/model_comparison/transformers_answer.hpp"

#include <span>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Largest accepted difference of a log-probability p of transformers: kAbsoluteTolerance +
/// kRelativeTolerance * |p|.
///
/// Both programs compute in float32, in another order. Rounding then changes logits by about 1e-6
/// of their size per layer; models of 30 layers differ by 1e-5 to 1e-4 (docs/how-to/your-model.md).
/// The absolute part changes an importance ratio by 0.1 %, far below the clipping range of any
/// algorithm. The relative part covers tokens that are never sampled, such as p = -40, whose
/// rounding error is that of the largest logit. A wrong rotary base, norm or head differs by more
/// than 0.01.
inline constexpr double kAbsoluteTolerance = 1e-3;
inline constexpr double kRelativeTolerance = 1e-4;

struct SequenceDifference {
  std::string input;  ///< "ids", or "text".
  std::int64_t tokens = 0;
  double largest = 0;  ///< Absolute difference of log-probabilities, over the vocabulary.
  double mean = 0;
  std::int64_t same_best = 0;  ///< Positions after which both find the same token most likely.
  double of_tolerance = 0;     ///< Largest difference divided by what is accepted.
};

/// How many results of both are equal.
struct EqualTexts {
  std::int64_t equal = 0;
  std::int64_t compared = 0;
  std::string note;  ///< Why nothing was compared, or the first result that differs.
};

struct ModelComparison {
  std::string name;
  std::string architecture;
  std::string transformers;
  std::string torch;
  std::vector<SequenceDifference> sequences;
  EqualTexts tokenizer;
  EqualTexts chat_template;
  bool agrees = false;
};

void describe(auto& v, SequenceDifference& d) {
  v.field(1, "input", d.input);
  v.field(2, "tokens", d.tokens);
  v.field(3, "largest", d.largest);
  v.field(4, "mean", d.mean);
  v.field(5, "same_best", d.same_best);
  v.field(6, "of_tolerance", d.of_tolerance);
}

void describe(auto& v, EqualTexts& e) {
  v.field(1, "equal", e.equal);
  v.field(2, "compared", e.compared);
  v.field(3, "note", e.note);
}

void describe(auto& v, ModelComparison& c) {
  v.field(1, "name", c.name);
  v.field(2, "architecture", c.architecture);
  v.field(3, "transformers", c.transformers);
  v.field(4, "torch", c.torch);
  v.field(5, "sequences", c.sequences);
  v.field(6, "tokenizer", c.tokenizer);
  v.field(7, "chat_template", c.chat_template);
  v.field(8, "agrees", c.agrees);
}

/// Compares the logits after each token of one sequence, both [tokens, vocabulary]. Requires:
/// equal sizes, a multiple of the vocabulary; finite values.
SequenceDifference compare_logits(std::span<const float> ours,
                                  std::span<const float> theirs,
                                  std::int32_t vocabulary);

/// `ours` has the ids of each text. Requires: `theirs` has as many.
EqualTexts compare_tokens(std::span<const std::vector<std::int32_t>> ours,
                          const TransformersAnswer& theirs);

/// `ours` has the result of each chat. A chat that Temper rejects is not compared, because a run
/// rejects it, too.
EqualTexts compare_chats(std::span<const RenderedChat> ours, const TransformersAnswer& theirs);

/// True if every difference is within the tolerance and every compared text is equal.
bool agrees(const ModelComparison& comparison);

/// A table for a terminal. Its last line is the verdict.
std::string to_text(const ModelComparison& comparison);

}  // namespace temper::orchestrator
