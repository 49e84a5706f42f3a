// The requests that an agent program sends, and their answers: the parts of OpenAI's completions
// and chat completions that a rollout can be true to, and token ids in and out as vLLM has them
// (/inference/v1/generate). Pure. Whatever would change what is sampled is refused by its name: the
// run samples with its own section `sampling`.
#pragma once

#include "actors/task/tokenizer.hpp"
#include "core/result.hpp"
#include "rollout/engine.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::rollout {

enum class GatewayRoute { Completions, Chat, Generate, Models };

/// /sessions/SESSION/v1/completions and its like.
struct GatewayTarget {
  std::string session;
  GatewayRoute route = GatewayRoute::Completions;
};
/// Error: no such route; says which there are.
Result<GatewayTarget> parse_target(std::string_view target);

/// Why a request is refused whose session is not there.
inline constexpr std::string_view kNoSession = "this session has ended, or there was none";

/// A turn that is asked for.
struct TurnRequest {
  /// The context as token ids, or else as text.
  std::optional<std::vector<std::int32_t>> tokens;
  std::string text;
  std::optional<Tokens> most;
  std::vector<std::int32_t> stops;  ///< Each a token that ends the turn, as its last.
};
/// Requires: a route of turns. Errors: not JSON, a field that is missing or of another type, one
/// that would sample otherwise than the run does, a stop that is not one token.
Result<TurnRequest> parse_turn(GatewayRoute route,
                               std::string_view body,
                               const SamplingConfig& sampling,
                               const actors::Tokenizer& tokenizer);

struct TurnAnswer {
  std::string id;
  std::size_t context = 0;  ///< Tokens.
  std::string text;         ///< Without the token that ended it.
  const Generation* turn = nullptr;
};
std::string write_turn(GatewayRoute route, const TurnAnswer& answer);
std::string write_models();
std::string write_error(std::string_view message);

/// The text of a turn: up to the token that ended it.
std::string text_of_turn(const Generation& turn,
                         const std::vector<std::int32_t>& stops,
                         const actors::Tokenizer& tokenizer);

}  // namespace temper::rollout
