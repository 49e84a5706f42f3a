// What `python -m temper.compare` and `temper-worker logits` report, validated.
#pragma once

#include "core/result.hpp"
#include "orchestrator/model_comparison/comparison_request.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// Written by `python -m temper.compare` when all else is done.
inline constexpr const char* kAnswerFile = "answer.json";

/// A chat as a template rendered it, or why the template rejected it.
struct RenderedChat {
  std::string text;
  std::string error;  ///< Empty: rendered.
};

struct TransformersAnswer {
  std::string transformers;     ///< Version.
  std::string torch;            ///< Version.
  std::string architecture;     ///< Class of the model.
  std::string tokenizer_error;  ///< Why transformers cannot load the tokenizer; empty: it can.
  std::vector<std::vector<std::int32_t>> tokens;   ///< Of each text.
  std::optional<std::vector<RenderedChat>> chats;  ///< Empty optional: no template.
};

/// Errors: Internal, naming the field, what was found and what was expected. Accepted: exactly one
/// list of token ids >= 0 for each text, one result for each chat, and logits of `vocabulary`
/// tokens.
Result<TransformersAnswer> parse_transformers_answer(std::string_view json,
                                                     const ComparisonRequest& request,
                                                     std::int32_t vocabulary);

/// The logits in a file, [positions, vocabulary]. Errors: Io; Internal for a file of another size,
/// and for a value that is not finite, with its place.
Result<std::vector<float>> read_logits(const std::filesystem::path& file,
                                       const ComparisonRequest& request,
                                       std::int32_t vocabulary);

}  // namespace temper::orchestrator
