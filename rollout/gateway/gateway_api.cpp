#include "rollout/gateway/gateway_api.hpp"

#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace temper::rollout {
namespace {

using nlohmann::json;

constexpr std::string_view kModel = "policy";
constexpr std::array<std::pair<std::string_view, GatewayRoute>, 4> kRoutes{
    {{"/v1/completions", GatewayRoute::Completions},
     {"/v1/chat/completions", GatewayRoute::Chat},
     {"/inference/v1/generate", GatewayRoute::Generate},
     {"/v1/models", GatewayRoute::Models}}};

/// Parameters that are accepted with one value only. Any other would sample from a distribution
/// other than the one whose log-probs are recorded.
Status check_neutral(const json& request, const SamplingConfig& sampling) {
  const std::array<std::pair<const char*, double>, 9> neutral{
      {{"temperature", sampling.temperature},
       {"top_p", sampling.top_p},
       {"top_k", -1},
       {"min_p", 0},
       {"n", 1},
       {"best_of", 1},
       {"presence_penalty", 0},
       {"frequency_penalty", 0},
       {"repetition_penalty", 1}}};
  for (const auto& [name, value] : neutral) {
    const auto found = request.find(name);
    if (found == request.end() || found->is_null() || *found == value ||
        (std::string_view(name) == "top_k" && *found == 0))
      continue;
    return invalid_input(
        fmt::format("{}: expected {}, as in the `sampling` section of the run, found {}",
                    name,
                    value,
                    found->dump()));
  }
  for (const char* const name : {"stream", "echo"}) {
    if (request.value(name, json(false)) == true)
      return invalid_input(fmt::format("{} is not supported", name));
  }
  for (const char* const name :
       {"logit_bias", "response_format", "guided_json", "structured_outputs"}) {
    if (request.contains(name) && !request[name].is_null() && !request[name].empty())
      return invalid_input(fmt::format(
          "{} is not supported, because it would change the sampling distribution", name));
  }
  return {};
}

Result<std::vector<std::int32_t>> tokens_of(const json& list,
                                            std::string_view name,
                                            std::int32_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (const json& token : list) {
    if (!token.is_number_integer() || token.get<std::int64_t>() < 0 ||
        token.get<std::int64_t>() >= vocabulary) {
      return invalid_input(
          fmt::format("{}: {} is not a token of the vocabulary, which has {} tokens",
                      name,
                      token.dump(),
                      vocabulary));
    }
    tokens.push_back(token.get<std::int32_t>());
  }
  return tokens;
}

Status read_most(const json& request, const char* name, TurnRequest& turn) {
  const auto found = request.find(name);
  if (found == request.end() || found->is_null())
    return {};
  if (!found->is_number_integer() || found->get<std::int64_t>() < 1)
    return invalid_input(
        fmt::format("{}: expected a number of tokens, found {}", name, found->dump()));
  turn.most = Tokens(found->get<std::int64_t>());
  return {};
}

Status read_stops(const json& request, const actors::Tokenizer& tokenizer, TurnRequest& turn) {
  if (const auto ids = request.find("stop_token_ids"); ids != request.end() && ids->is_array()) {
    TEMPER_TRY(turn.stops, tokens_of(*ids, "stop_token_ids", tokenizer.vocabulary()));
  }
  const auto found = request.find("stop");
  if (found == request.end() || found->is_null())
    return {};
  for (const json& stop : found->is_array() ? *found : json::array({*found})) {
    if (!stop.is_string())
      return invalid_input("stop: expected a string or a list of strings");
    TEMPER_TRY(const auto tokens, tokenizer.encode(stop.get<std::string>()));
    if (tokens.size() != 1) {
      return invalid_input(fmt::format(
          "stop: {} is {} tokens; only a single token can end a turn", stop.dump(), tokens.size()));
    }
    turn.stops.push_back(tokens.front());
  }
  return {};
}

/// Concatenates the messages of a chat; roles are not marked.
Status read_messages(const json& request, const actors::Tokenizer& tokenizer, TurnRequest& turn) {
  if (tokenizer.is_of_model()) {
    return invalid_input(
        "the gateway applies no chat template; apply it in the agent (apply_chat_template "
        "of "
        "transformers) and send token ids to /v1/completions or /inference/v1/generate");
  }
  if (request.contains("tools") && !request["tools"].empty())
    return invalid_input("tools require a chat template, which this policy does not have");
  const auto messages = request.find("messages");
  if (messages == request.end() || !messages->is_array())
    return invalid_input("messages: expected a list");
  for (const json& message : *messages) {
    const json content = message.is_object() ? message.value("content", json()) : json();
    if (!content.is_string())
      return invalid_input("messages: expected text as content, found " + message.dump());
    turn.text += content.get<std::string>();
  }
  return {};
}

json usage(const TurnAnswer& answer) {
  const std::size_t made = answer.turn->tokens.size();
  return {{"prompt_tokens", answer.context},
          {"completion_tokens", made},
          {"total_tokens", answer.context + made}};
}

json content_of(const Generation& turn) {
  json content = json::array();
  for (std::size_t i = 0; i < turn.tokens.size(); ++i) {
    content.push_back(
        {{"token", fmt::format("token_id:{}", turn.tokens[i])}, {"logprob", turn.logprobs[i]}});
  }
  return {{"content", std::move(content)}};
}

}  // namespace

Result<GatewayTarget> parse_target(std::string_view target) {
  constexpr std::string_view kSessions = "/sessions/";
  target = target.substr(0, target.find('?'));
  if (target.starts_with(kSessions)) {
    const std::string_view rest = target.substr(kSessions.size());
    const std::size_t end = std::min(rest.find('/'), rest.size());
    for (const auto& [path, route] : kRoutes) {
      if (rest.substr(end) == path)
        return GatewayTarget{std::string(rest.substr(0, end)), route};
    }
  }
  return Error{ErrorCode::NotFound,
               "unknown route; expected /sessions/SESSION followed by /v1/completions, "
               "/v1/chat/completions, "
               "/inference/v1/generate or /v1/models"};
}

Result<TurnRequest> parse_turn(GatewayRoute route,
                               std::string_view body,
                               const SamplingConfig& sampling,
                               const actors::Tokenizer& tokenizer) {
  const json whole = parse_json(body);
  if (!whole.is_object())
    return invalid_input("the body is not a JSON object");
  TurnRequest turn;
  const bool ids = route == GatewayRoute::Generate;
  const json request = ids ? whole.value("sampling_params", json::object()) : whole;
  if (!request.is_object())
    return invalid_input("sampling_params: expected an object");
  TEMPER_TRY_STATUS(check_neutral(request, sampling));
  TEMPER_TRY_STATUS(check_neutral(whole, sampling));
  TEMPER_TRY_STATUS(read_most(request, "max_tokens", turn));
  TEMPER_TRY_STATUS(read_stops(request, tokenizer, turn));
  if (route == GatewayRoute::Chat) {
    TEMPER_TRY_STATUS(read_most(request, "max_completion_tokens", turn));
    TEMPER_TRY_STATUS(read_messages(request, tokenizer, turn));
    return turn;
  }
  const char* const name = ids ? "token_ids" : "prompt";
  const json prompt = whole.value(name, json());
  if (prompt.is_array()) {
    TEMPER_TRY(turn.tokens, tokens_of(prompt, name, tokenizer.vocabulary()));
    return turn;
  }
  if (ids || !prompt.is_string())
    return invalid_input(
        fmt::format("{}: expected a list of token ids{}", name, ids ? "" : " or text"));
  turn.text = prompt.get<std::string>();
  return turn;
}

std::string write_turn(GatewayRoute route, const TurnAnswer& answer) {
  const Generation& turn = *answer.turn;
  json choice{{"index", 0},
              {"finish_reason", turn.finish == actors::FinishReason::End ? "stop" : "length"},
              {"token_ids", turn.tokens}};
  json whole{{"id", answer.id}, {"model", kModel}};
  if (route == GatewayRoute::Chat) {
    choice["message"] = {{"role", "assistant"}, {"content", answer.text}};
    choice["logprobs"] = content_of(turn);
    whole["object"] = "chat.completion";
    whole["usage"] = usage(answer);
  } else if (route == GatewayRoute::Completions) {
    choice["text"] = answer.text;
    choice["logprobs"] = {{"token_logprobs", turn.logprobs}};
    whole["object"] = "text_completion";
    whole["usage"] = usage(answer);
  } else {
    choice["logprobs"] = content_of(turn);
    whole["request_id"] = answer.id;
  }
  whole["choices"] = json::array({std::move(choice)});
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string write_models() {
  return json{{"object", "list"}, {"data", {{{"id", kModel}, {"object", "model"}}}}}.dump();
}

std::string write_error(std::string_view message) {
  return json{{"error", {{"message", message}, {"type", "invalid_request_error"}}}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

std::string text_of_turn(const Generation& turn,
                         const std::vector<std::int32_t>& stops,
                         const actors::Tokenizer& tokenizer) {
  std::vector<std::int32_t> tokens = turn.tokens;
  if (!tokens.empty() && std::ranges::count(stops, tokens.back()) > 0)
    tokens.pop_back();
  return tokenizer.decode(tokens);
}

}  // namespace temper::rollout
