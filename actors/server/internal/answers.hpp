// Reading what servers answer, with errors that say which field is not as it should be.
#pragma once

#include "actors/border/values.hpp"
#include "actors/server/server_api.hpp"
#include "core/json_cursor.hpp"
#include "core/json_document.hpp"

#include <functional>

namespace temper::actors::internal {

/// The object that `body` is; Corrupt where it is none (cut off, for one).
Result<nlohmann::json> object_of(std::string_view body);

/// What an object has under this key, or null; no copy, since an answer may have a thousand tokens.
const nlohmann::json& member(const nlohmann::json& object, const char* key);

/// [1, 2, 3]
std::string list_of(std::span<const std::int32_t> tokens);

/// Reads one answer front to back into a reply. The first thing that cannot be is kept; what comes
/// after it does not count.
class ReplyReader {
 public:
  ReplyReader(std::string_view body,
              std::int32_t vocabulary,
              LogprobOf logprobs = LogprobOf::SampledToken)
      : json(body), body_(body), vocabulary_(vocabulary), logprobs_(logprobs) {}

  JsonCursor json;
  GenerateReply reply;

  /// A token id of the vocabulary.
  void read_token();
  /// The same, once it is read; 0 where it is not one.
  std::int32_t token_of(std::int64_t id);
  /// A log-prob of the token that comes next in `into`.
  void read_logprob(std::vector<float>& into);
  /// The same, once it is read.
  void add_logprob(double logprob, std::vector<float>& into);
  /// [{"version", "start", "end"}, ...]; or null: the server does not say.
  void read_runs();
  /// "stop", "length", "abort".
  void read_ended();
  /// The same where a server has other words for it.
  void ended(GenerateReply::Ended why);
  /// vLLM's prompt_logprobs: [null, {"TOKEN": {"logprob": ...}, ...}, ...], the likeliest tokens
  /// and the one that is there.
  void read_prompt_logprobs(std::span<const std::int32_t> tokens, std::vector<float>& scores);
  /// {"choices": [...]}, of which there is one.
  void read_only_choice(const std::function<void()>& read);
  /// No effect once the text is not as it was asked for: status() says that.
  void refuse(std::string why);
  /// All tokens are of this version.
  void label_all(std::string label);

  /// The reply; Error: what cannot be, or an answer that is no whole JSON object.
  Result<GenerateReply> finish();
  /// The same of an answer from which scores were read.
  Status status();

 private:
  const std::string_view body_;
  const std::int32_t vocabulary_;
  const LogprobOf logprobs_;
  bool ended_ = false;
  std::size_t labelled_ = 0;
  std::optional<Error> problem_;
};

/// The `weight_version` of an answer of `route`.
Result<std::string> version_of(std::string_view body, std::string_view route);

}  // namespace temper::actors::internal
