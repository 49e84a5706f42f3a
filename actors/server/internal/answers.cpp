#include "actors/server/internal/answers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace temper::actors::internal {

Result<nlohmann::json> object_of(std::string_view body) {
  nlohmann::json document = parse_json(body);
  if (!document.is_object())
    return corrupt(fmt::format("an answer that is no JSON object: \"{}\"", body.substr(0, 80)));
  return document;
}

const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json none;
  if (!object.is_object())
    return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string list_of(std::span<const std::int32_t> tokens) {
  return fmt::format("[{}]", fmt::join(tokens, ","));
}

Result<std::int32_t> token_of(const nlohmann::json& value, std::int32_t vocabulary) {
  if (value.is_number_integer()) {
    const auto token = value.get<std::int64_t>();
    if (token >= 0 && token < vocabulary)
      return static_cast<std::int32_t>(token);
  }
  return corrupt(fmt::format("{} is no token of a vocabulary of {}", value.dump(), vocabulary));
}

Result<float> logprob_of(const nlohmann::json& value) {
  constexpr double kRounding = 1e-3;
  if (value.is_number()) {
    const auto logprob = value.get<double>();
    if (std::isfinite(logprob) && logprob <= kRounding)
      return static_cast<float>(std::min(logprob, 0.0));
  }
  return corrupt(fmt::format("{} is no log-prob", value.dump()));
}

Result<std::optional<std::vector<LabelledRun>>> runs_of(const nlohmann::json& spans,
                                                        std::size_t tokens) {
  using Runs = std::optional<std::vector<LabelledRun>>;
  if (spans.is_null())
    return Runs();
  std::vector<LabelledRun> runs;
  std::size_t at = 0;
  for (const auto& span : spans) {
    const bool whole = span.is_object() && span.contains("version") && span.contains("start") &&
                       span.contains("end") && span["version"].is_string() &&
                       span["start"].is_number_unsigned() && span["end"].is_number_unsigned();
    if (!whole || span["start"].get<std::size_t>() != at || span["end"].get<std::size_t>() < at)
      return corrupt("weight_versions does not follow the tokens: " + spans.dump());
    const auto end = span["end"].get<std::size_t>();
    runs.push_back({span["version"].get<std::string>(), end - at});
    at = end;
  }
  if (at != tokens)
    return corrupt(fmt::format("weight_versions ends at {} of {} tokens", at, tokens));
  return Runs(std::move(runs));
}

Result<std::string> version_of(std::string_view body, std::string_view route) {
  TEMPER_TRY(const nlohmann::json answer, object_of(body));
  const nlohmann::json& version = member(answer, "weight_version");
  if (!version.is_string())
    return corrupt(fmt::format("no weight_version in the answer of {}", route));
  return version.get<std::string>();
}

Result<GenerateReply::Ended> ended_of(const nlohmann::json& word) {
  using Ended = GenerateReply::Ended;
  if (word == "stop")
    return Ended::End;
  if (word == "length")
    return Ended::Length;
  if (word == "abort")
    return Ended::Aborted;
  return corrupt("a response that ended for \"" + word.dump() + "\"");
}

}  // namespace temper::actors::internal
