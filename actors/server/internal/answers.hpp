// Reading what servers answer, with errors that say which field is not as it should be.
#pragma once

#include "actors/server/server_api.hpp"
#include "core/json_document.hpp"

namespace temper::actors::internal {

/// The object that `body` is; Corrupt where it is none (cut off, for one).
Result<nlohmann::json> object_of(std::string_view body);

/// What an object has under this key, or null; no copy, since an answer may have a thousand tokens.
const nlohmann::json& member(const nlohmann::json& object, const char* key);

/// [1, 2, 3]
std::string list_of(std::span<const std::int32_t> tokens);

/// A token id of the vocabulary.
Result<std::int32_t> token_of(const nlohmann::json& value, std::int32_t vocabulary);
/// A log-prob: finite, and above 0 by rounding at most.
Result<float> logprob_of(const nlohmann::json& value);

/// What [{"version", "start", "end"}, ...] says; none for null. Error: they do not follow each
/// other from 0 to `tokens`.
Result<std::optional<std::vector<LabelledRun>>> runs_of(const nlohmann::json& spans,
                                                        std::size_t tokens);

/// The `weight_version` of an answer of `route`.
Result<std::string> version_of(std::string_view body, std::string_view route);

/// "stop", "length", "abort".
Result<GenerateReply::Ended> ended_of(const nlohmann::json& word);

}  // namespace temper::actors::internal
