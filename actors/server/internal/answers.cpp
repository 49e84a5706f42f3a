#include "actors/server/internal/answers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace temper::actors::internal {

Result<nlohmann::json> object_of(std::string_view body) {
  nlohmann::json document = parse_json(body);
  if (!document.is_object())
    return corrupt(fmt::format("expected a JSON object, found \"{}\"", body.substr(0, 80)));
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

void ReplyReader::refuse(std::string why) {
  if (!problem_ && json.good())
    problem_ = corrupt(std::move(why));
}

void ReplyReader::read_only_choice(const std::function<void()>& read) {
  int choices = 0;
  json.object([&](std::string_view key) {
    if (key != "choices")
      return json.skip();
    json.array([&] {
      ++choices;
      read();
    });
  });
  if (choices != 1)
    refuse(fmt::format("expected one choice, found {}", choices));
}

void ReplyReader::read_token() {
  reply.tokens.push_back(token_of(json.integer()));
}

std::int32_t ReplyReader::token_of(std::int64_t id) {
  const Status possible = check_token(id, vocabulary_);
  if (!possible)
    refuse(possible.error().context);
  return possible ? static_cast<std::int32_t>(id) : 0;
}

void ReplyReader::read_logprob(std::vector<float>& into) {
  if (json.null())  // JSON has no NaN or infinity; some servers write null instead
    return refuse(fmt::format("token {}: expected a number as log-prob, found null", into.size()));
  const bool good = json.good();
  const bool something = json.next() != '\0';
  const double logprob = json.number();
  if (json.good())
    return add_logprob(logprob, into);
  if (good && something && !problem_)
    problem_ = corrupt(fmt::format("token {}: expected a finite number as log-prob", into.size()));
}

void ReplyReader::add_logprob(double logprob, std::vector<float>& into) {
  if (const Status possible = check_logprob(logprob, logprobs_); !possible)
    refuse(fmt::format("token {}: {}", into.size(), possible.error().context));
  into.push_back(static_cast<float>(std::min(logprob, 0.0)));
}

void ReplyReader::read_runs() {
  reply.runs.reset();
  if (json.null())
    return;
  std::vector<LabeledRun> runs;
  json.array([&] {
    LabeledRun run;
    std::int64_t start = -1, end = -1;
    json.object([&](std::string_view key) {
      if (key == "version") {
        run.label = json.text();
      } else if (key == "start") {
        start = json.integer();
      } else if (key == "end") {
        end = json.integer();
      } else {
        json.skip();
      }
    });
    const auto at = static_cast<std::int64_t>(labeled_);
    if (start != at || end < at)
      return refuse(fmt::format(
          "weight_versions: expected the next run at {}, found {} to {}", at, start, end));
    run.tokens = static_cast<std::size_t>(end - at);
    labeled_ = static_cast<std::size_t>(end);
    runs.push_back(std::move(run));
  });
  reply.runs = std::move(runs);
}

void ReplyReader::read_prompt_logprobs(std::span<const std::int32_t> tokens,
                                       std::vector<float>& scores) {
  if (json.null())
    return;
  std::size_t at = 0;
  json.array([&] {
    const std::size_t i = at++;
    if (i == 0 || i >= tokens.size())
      return json.skip();
    const std::string wanted = std::to_string(tokens[i]);
    json.object([&](std::string_view key) {
      if (key != wanted)
        return json.skip();
      json.object([&](std::string_view field) {
        return field == "logprob" ? read_logprob(scores) : json.skip();
      });
    });
    if (scores.size() != i)
      refuse(fmt::format("prompt_logprobs[{}] has no entry for token {}", i, wanted));
  });
  if (at != tokens.size())
    refuse(fmt::format("prompt_logprobs: expected {} entries, found {}", tokens.size(), at));
}

void ReplyReader::label_all(std::string label) {
  labeled_ = reply.tokens.size();
  reply.runs.emplace({LabeledRun{std::move(label), labeled_}});
}

void ReplyReader::ended(GenerateReply::StopReason why) {
  ended_ = true;
  reply.ended = why;
}

void ReplyReader::read_ended() {
  using StopReason = GenerateReply::StopReason;
  const std::string_view word = json.text();
  ended_ = true;
  if (word == "stop") {
    reply.ended = StopReason::End;
  } else if (word == "length") {
    reply.ended = StopReason::Length;
  } else if (word == "abort") {
    reply.ended = StopReason::Aborted;
  } else {
    refuse(fmt::format("unknown finish reason \"{}\"", word));
  }
}

Status ReplyReader::status() {
  if (problem_)
    return *std::move(problem_);
  if (!json.whole())
    return corrupt(
        fmt::format("expected a complete JSON object, found \"{}\"", body_.substr(0, 80)));
  return {};
}

Result<GenerateReply> ReplyReader::finish() {
  if (!ended_)
    refuse("expected a finish reason");
  if (reply.runs && labeled_ != reply.tokens.size()) {
    refuse(fmt::format(
        "weight_versions: expected runs up to token {}, found {}", reply.tokens.size(), labeled_));
  }
  TEMPER_TRY_STATUS(status());
  return std::move(reply);
}

Result<std::string> version_of(std::string_view body, std::string_view route) {
  TEMPER_TRY(const nlohmann::json answer, object_of(body));
  const nlohmann::json& version = member(answer, "weight_version");
  if (!version.is_string())
    return corrupt(fmt::format("{}: expected weight_version in the response", route));
  return version.get<std::string>();
}

}  // namespace temper::actors::internal
