// Parses requests of an agent program and writes their answers: the parts of OpenAI's completions
// and chat completions that a rollout can honor, and token ids in and out as in vLLM
// (/inference/v1/generate). No I/O. Parameters that would change the sampling distribution are
// rejected by name, because the run samples with its own `sampling` section.
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

/// As in /sessions/SESSION/v1/completions.
struct GatewayTarget {
  std::string session;
  GatewayRoute route = GatewayRoute::Completions;
};
/// Error: no such route; lists the routes that exist.
Result<GatewayTarget> parse_target(std::string_view target);

/// Error of a request whose session does not exist.
inline constexpr std::string_view kNoSession = "this session has ended or never existed";

/// A requested turn.
struct TurnRequest {
  /// The context as token ids, or as text.
  std::optional<std::vector<std::int32_t>> tokens;
  std::string text;
  std::optional<Tokens> most;
  std::vector<std::int32_t> stops;  ///< Tokens that end the turn, and are its last token.
};
/// Requires: a route of turns. Errors: not JSON; a field that is missing or has another type; a
/// parameter that would change the sampling distribution; a stop that is not one token.
Result<TurnRequest> parse_turn(GatewayRoute route,
                               std::string_view body,
                               const SamplingConfig& sampling,
                               const actors::Tokenizer& tokenizer);

struct TurnAnswer {
  std::string id;
  std::size_t context = 0;  ///< Number of tokens.
  std::string text;         ///< Without the token that ended the turn.
  const Generation* turn = nullptr;
};
std::string write_turn(GatewayRoute route, const TurnAnswer& answer);
std::string write_models();
std::string write_error(std::string_view message);

/// The text of a turn, without the token that ended it.
std::string text_of_turn(const Generation& turn,
                         const std::vector<std::int32_t>& stops,
                         const actors::Tokenizer& tokenizer);

}  // namespace temper::rollout
