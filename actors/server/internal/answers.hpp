// Parses responses of servers. Errors name the invalid field.
#pragma once

#include "actors/border/values.hpp"
#include "actors/server/server_api.hpp"
#include "core/json_cursor.hpp"
#include "core/json_document.hpp"

#include <functional>

namespace temper::actors::internal {

/// Parses a JSON object. Error: Corrupt if it is not one (truncated, for example).
Result<nlohmann::json> object_of(std::string_view body);

/// The value of this key, or null. Not copied, since a response may have a thousand tokens.
const nlohmann::json& member(const nlohmann::json& object, const char* key);

/// [1, 2, 3]
std::string list_of(std::span<const std::int32_t> tokens);

/// Reads one response front to back. The first problem is kept; everything after it is ignored.
class ReplyReader {
 public:
  ReplyReader(std::string_view body,
              std::int32_t vocabulary,
              LogprobOf logprobs = LogprobOf::SampledToken)
      : json(body), body_(body), vocabulary_(vocabulary), logprobs_(logprobs) {}

  JsonCursor json;
  GenerateReply reply;

  /// Reads a token id and checks it against the vocabulary.
  void read_token();
  /// Checks a token id that was read; returns 0 if it is invalid.
  std::int32_t token_of(std::int64_t id);
  /// Reads a log-prob and appends it to `into`.
  void read_logprob(std::vector<float>& into);
  /// Checks a log-prob that was read and appends it.
  void add_logprob(double logprob, std::vector<float>& into);
  /// [{"version", "start", "end"}, ...], or null if the server reports no versions.
  void read_runs();
  /// "stop", "length", "abort".
  void read_ended();
  /// Records the reason for servers that use other words.
  void ended(GenerateReply::StopReason why);
  /// vLLM's prompt_logprobs: [null, {"TOKEN": {"logprob": ...}, ...}, ...], with the most likely
  /// tokens and the actual one.
  void read_prompt_logprobs(std::span<const std::int32_t> tokens, std::vector<float>& scores);
  /// {"choices": [...]} with exactly one element.
  void read_only_choice(const std::function<void()>& read);
  /// Records a problem. No effect after a JSON mismatch, which status() reports.
  void refuse(std::string why);
  /// Labels all tokens with this version.
  void label_all(std::string label);

  /// The reply. Error: the first problem, or a response that is not a complete JSON object.
  Result<GenerateReply> finish();
  /// The same for a response with scores.
  Status status();

 private:
  const std::string_view body_;
  const std::int32_t vocabulary_;
  const LogprobOf logprobs_;
  bool ended_ = false;
  std::size_t labeled_ = 0;
  std::optional<Error> problem_;
};

/// The `weight_version` in a response of `route`.
Result<std::string> version_of(std::string_view body, std::string_view route);

}  // namespace temper::actors::internal
