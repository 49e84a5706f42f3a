// The merges of a SentencePiece tokenizer in a GGUF file, which stores a score for each token in
// their place.
#pragma once

#include "core/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::actors {

/// Each pair of tokens whose joined text is a token, in the order in which llama.cpp joins them:
/// best score of the joined token first, of equal ones the leftmost. Published vocabularies give
/// one score to all runs of spaces; from the left, such a run grows as if longer left tokens came
/// first. `tokens`: texts in UTF-8 by id; an empty one takes no part. Error Unsupported: the scores
/// of joined tokens are not integers (a Unigram model), or equal for tokens that are not runs of
/// one character, so that no order of pairs has the same effect. Requires: as many scores as
/// tokens. Takes time in the square of the length of a token.
Result<std::vector<std::pair<std::string, std::string>>> merges_by_score(
    std::span<const std::string_view> tokens, std::span<const double> scores);

}  // namespace temper::actors
