// What Temper and transformers compute for a comparison of the two, and the files in which both
// processes find the request and leave their results.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <string>
#include <vector>

namespace temper::orchestrator {

/// In the folder that each process gets.
inline constexpr const char* kRequestFile = "request.json";
/// Logits after each token of each sequence: float32, little-endian, [positions, vocabulary].
inline constexpr const char* kLogitsFile = "logits.f32";

struct ChatTurn {
  std::string role;
  std::string content;
};
using Chat = std::vector<ChatTurn>;

struct ComparisonRequest {
  std::vector<std::vector<std::int32_t>> sequences;
  std::vector<std::string> texts;  ///< To encode without special tokens.
  std::vector<Chat> chats;         ///< To render up to the start of the assistant's message.

  /// Number of tokens of all sequences.
  std::int64_t positions() const;
};

void describe(auto& v, ChatTurn& t) {
  v.field(1, "role", t.role);
  v.field(2, "content", t.content);
}

void describe(auto& v, ComparisonRequest& r) {
  v.field(1, "sequences", r.sequences);
  v.field(2, "texts", r.texts);
  v.field(3, "chats", r.chats);
}

/// Pseudo-random token ids, always the same for a vocabulary: sequences of 1 to 64 tokens, none
/// longer than the context. Requires: vocabulary > 0, context > 0.
std::vector<std::vector<std::int32_t>> comparison_sequences(std::int32_t vocabulary,
                                                            Tokens context);

/// Texts with words, digits, white space, code and several scripts.
std::vector<std::string> comparison_texts();

/// Chats that most templates accept: one question, and a question after an answer.
std::vector<Chat> comparison_chats();

/// The request that compare_model() wrote. Errors: NotFound, Corrupt.
Result<ComparisonRequest> read_comparison_request(const std::string& folder);

}  // namespace temper::orchestrator
