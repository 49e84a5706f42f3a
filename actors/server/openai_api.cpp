// Servers with OpenAI's /v1/completions and its extensions. Their capabilities are unknown, so they
// are probed first: one request for a token, and one for the log-probs of a prompt in each of three
// ways. Such a server does not report its weights, cannot abort requests and cannot pause.
#include "actors/server/internal/answers.hpp"
#include "actors/server/internal/plain_server.hpp"
#include "actors/server/reload.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace temper::actors {
namespace {

using internal::list_of;

/// The largest bias that OpenAI's API allows.
constexpr int kForcedBias = 100;

class OpenaiApi final : public PlainServerApi {
 public:
  OpenaiApi(const EngineConfig& config, const ServerSampling& sampling)
      : PlainServerApi(sampling, "an OpenAI-compatible server"), loading_(loading_of(config)) {
    if (auto reload = parse_reload(config.reload))
      reload_ = *std::move(reload);
  }

  /// The list of routes is not used; the probes are more reliable.
  Status accept_routes(const std::set<std::string>&) override {
    probe_ = Probe::Extended;
    cannot_generate_.reset();
    return {};
  }
  std::string health() const override { return "/v1/models"; }

  std::optional<ServerCall> next_probe() const override {
    const std::vector<std::int32_t> tokens = probe_tokens();
    switch (probe_) {
      case Probe::Extended:
      case Probe::Plain:
        return completion(tokens, 1, generating({}, probe_ == Probe::Extended));
      case Probe::PromptLogprobs:
        return score_by(Scoring::Prompt, tokens);
      case Probe::Echo:
        return score_by(Scoring::Echo, tokens);
      case Probe::Bias:
        return score_by(Scoring::Bias, tokens);
      case Probe::OtherBias:
        return score_by(Scoring::Bias, other_probe_tokens());
      case Probe::Done:
        break;
    }
    return std::nullopt;
  }

  Status learn(int status, std::string_view body) override {
    const bool good = status >= 200 && status < 300;
    switch (probe_) {
      case Probe::Extended:
      case Probe::Plain:
        return learn_generation(status, good, body);
      case Probe::PromptLogprobs:
        return learn_scoring(good, body, Scoring::Prompt, Probe::Echo);
      case Probe::Echo:
        return learn_scoring(good, body, Scoring::Echo, Probe::Bias);
      case Probe::Bias:
      case Probe::OtherBias:
        return learn_bias(good, body);
      case Probe::Done:
        break;
    }
    return {};
  }

  Status can_generate() const override {
    return cannot_generate_ ? Status(*cannot_generate_) : Status();
  }

  bool stops_at_tokens() const override { return false; }
  ServerCall generate(const GenerateCall& call) const override {
    return completion(call.tokens, call.most, generating(call, extended_));
  }

  Result<GenerateReply> read_generated(std::string_view body) const override {
    return read_reply(body, LogprobOf::SampledToken);
  }

  bool scores_at_once() const override { return scoring_ != Scoring::Bias; }
  ServerCall score(std::span<const std::int32_t> tokens) const override {
    return score_by(scoring_, tokens);
  }
  Result<std::vector<float>> read_scores(std::string_view body,
                                         std::span<const std::int32_t> tokens) const override {
    return read_scores_by(scoring_, body, tokens);
  }

  Loading loading() const override { return loading_; }
  std::vector<ServerCall> load(const std::string& folder, const std::string& label) const override {
    if (loading_ != Loading::Routes)
      return {};
    return {fill_reload(reload_, folder, label)};
  }
  Status check_loaded(std::string_view body) const override {
    const nlohmann::json answer = parse_json(body);
    if (!answer.is_object())
      return {};
    const nlohmann::json& error = internal::member(answer, "error");
    if (internal::member(answer, "success") == false || !error.is_null())
      return corrupt("the server reports: " + answer.dump().substr(0, 200));
    return {};
  }

  ServerLoad read_load(std::string_view metrics) const override {
    const auto first_of = [&](std::initializer_list<const char*> names) {
      for (const char* const name : names) {
        if (const auto value = metric(metrics, name))
          return *value;
      }
      return 0.0;
    };
    return {
        first_of({"vllm:num_requests_running", "sglang:num_running_reqs"}),
        first_of({"vllm:num_requests_waiting", "sglang:num_queue_reqs"}),
        first_of({"vllm:kv_cache_usage_perc", "sglang:token_usage"}),
        first_of({"vllm:num_preemptions_total", "sglang:num_retracted_reqs"}),
    };
  }

 private:
  enum class Probe { Extended, Plain, PromptLogprobs, Echo, Bias, OtherBias, Done };
  /// How to get the log-probs of given tokens: vLLM's prompt_logprobs; echoing the prompt with
  /// log-probs; or one token at a time, forced by its bias.
  enum class Scoring { Prompt, Echo, Bias };

  static Loading loading_of(const EngineConfig& config) {
    if (!config.reload.empty())
      return Loading::Routes;
    return config.restarts_server() ? Loading::Restart : Loading::Never;
  }

  std::vector<std::int32_t> probe_tokens() const {
    const std::int32_t last = sampling_.vocabulary - 1;
    return {last, last / 2, last};
  }
  std::vector<std::int32_t> other_probe_tokens() const {
    const std::int32_t last = sampling_.vocabulary - 1;
    return {last, last / 2, last / 2};
  }

  // --- Requests

  ServerCall completion(std::span<const std::int32_t> tokens,
                        std::int64_t most,
                        const std::string& rest) const {
    return {"POST",
            "/v1/completions",
            fmt::format(R"({{"model":"{}","prompt":{},"max_tokens":{},{}}})",
                        sampling_.model,
                        list_of(tokens),
                        most,
                        rest)};
  }
  /// Every setting that affects sampling, because servers have their own defaults.
  std::string generating(const GenerateCall& call, bool extended) const {
    std::string words = fmt::format(
        R"("n":1,"temperature":{},"top_p":{},"presence_penalty":0,"frequency_penalty":0,)"
        R"("logprobs":1,"stream":false)",
        call.greedy ? 0.0 : sampling_.temperature,
        sampling_.top_p);
    if (extended) {
      words +=
          fmt::format(R"(,"top_k":-1,"min_p":0.0,"repetition_penalty":1.0,"repeat_penalty":1.0,)"
                      R"("stop_token_ids":{},"skip_special_tokens":false,"return_token_ids":true,)"
                      R"("return_tokens_as_token_ids":true)",
                      list_of(sampling_.ends_with(call.stops)));
      if (!call.salt.empty())
        words += fmt::format(R"(,"cache_salt":"{}")", call.salt);
    }
    return words;
  }
  ServerCall score_by(Scoring how, std::span<const std::int32_t> tokens) const {
    constexpr std::string_view kPlain = R"("n":1,"temperature":1.0,"stream":false)";
    switch (how) {
      case Scoring::Prompt:
        return completion(tokens, 1, fmt::format(R"({},"prompt_logprobs":1)", kPlain));
      case Scoring::Echo:
        return completion(tokens, 1, fmt::format(R"({},"echo":true,"logprobs":1)", kPlain));
      case Scoring::Bias:
        break;
    }
    return completion(tokens.first(tokens.size() - 1),
                      1,
                      fmt::format(R"({},"logit_bias":{{"{}":{}}})",
                                  generating({}, extended_),
                                  tokens.back(),
                                  kForcedBias));
  }

  // --- Responses

  Status learn_generation(int status, bool good, std::string_view body) {
    constexpr int kBadRequest = 400, kUnprocessable = 422;
    if (probe_ == Probe::Extended && (status == kBadRequest || status == kUnprocessable)) {
      probe_ = Probe::Plain;  // The server accepts only OpenAI's own settings.
      return {};
    }
    if (!good) {
      return invalid_input(
          fmt::format("POST /v1/completions: expected status 200, found {}: {}; the prompt was a "
                      "list of three token ids",
                      status,
                      body.substr(0, 200)));
    }
    extended_ = probe_ == Probe::Extended;
    probe_ = Probe::PromptLogprobs;
    const nlohmann::json usage = internal::member(parse_json(body), "usage");
    const nlohmann::json& read = internal::member(usage, "prompt_tokens");
    if (read.is_number_integer() && read != 3) {
      return invalid_input(fmt::format(
          "the server counted {} tokens for a prompt of 3 token ids; it must not add tokens, "
          "such as the one that --add-bos adds",
          read.dump()));
    }
    if (const auto reply = read_generated(body); !reply) {
      cannot_generate_ =
          Error(reply.error()).within("cannot determine exactly what the server samples");
    } else if (reply->tokens.size() != 1 || reply->logprobs.size() != 1) {
      cannot_generate_ = invalid_input(
          fmt::format("expected one token id and one log-prob for one token sampled with "
                      "`logprobs: 1`, found {} and {}",
                      reply->tokens.size(),
                      reply->logprobs.size()));
    }
    return {};
  }

  Status learn_scoring(bool good, std::string_view body, Scoring how, Probe otherwise) {
    if (good && read_scores_by(how, body, probe_tokens())) {
      scoring_ = how;
      probe_ = Probe::Done;
    } else {
      probe_ = otherwise;
      scoring_ = Scoring::Bias;
    }
    return {};
  }

  /// Forces two different tokens. If both are more likely than one half, the log-probs are not the
  /// model's.
  Status learn_bias(bool good, std::string_view body) {
    const std::vector<std::int32_t> tokens =
        probe_ == Probe::Bias ? probe_tokens() : other_probe_tokens();
    const auto scores = good ? read_scores_by(Scoring::Bias, body, tokens)
                             : Result<std::vector<float>>(corrupt("expected status 200"));
    if (!scores) {
      return invalid_input(
          fmt::format("the server supports none of three ways to get log-probs of given tokens "
                      "(prompt_logprobs, "
                      "echo with logprobs, logit_bias), so its weights cannot be compared with the "
                      "trainer's; {}",
                      scores.error().context));
    }
    if (probe_ == Probe::Bias) {
      forced_ = std::exp(double{scores->front()});
      probe_ = Probe::OtherBias;
      return {};
    }
    constexpr double kRounding = 1e-3;
    if (forced_ + std::exp(double{scores->front()}) > 1 + kRounding) {
      return invalid_input(
          "the server's log-probs include logit_bias, and it supports no other way to score a "
          "prompt "
          "(prompt_logprobs, echo with logprobs), so its weights cannot be compared with "
          "the trainer's");
    }
    probe_ = Probe::Done;
    return {};
  }

  Result<GenerateReply> read_reply(std::string_view body, LogprobOf logprobs) const {
    internal::ReplyReader answer(body, sampling_.vocabulary, logprobs);
    answer.read_only_choice([&] { read_choice(answer); });
    return answer.finish();
  }

  Result<std::vector<float>> read_scores_by(Scoring how,
                                            std::string_view body,
                                            std::span<const std::int32_t> tokens) const {
    if (how == Scoring::Bias) {
      TEMPER_TRY(const GenerateReply reply, read_reply(body, LogprobOf::ScoredToken));
      if (reply.tokens.size() != 1 || reply.logprobs.size() != 1 ||
          reply.tokens.front() != tokens.back()) {
        return corrupt(fmt::format("the server did not sample token {} with a logit_bias of {}",
                                   tokens.back(),
                                   kForcedBias));
      }
      return reply.logprobs;
    }
    internal::ReplyReader answer(body, sampling_.vocabulary, LogprobOf::ScoredToken);
    std::vector<float> scores;
    const auto read_member = [&](std::string_view key) {
      if (how == Scoring::Prompt && key == "prompt_logprobs")
        return answer.read_prompt_logprobs(tokens, scores);
      if (how == Scoring::Echo && key == "logprobs" && answer.json.next() == '{')
        return read_echoed(answer, tokens.size(), scores);
      answer.json.skip();
    };
    answer.json.object([&](std::string_view key) {
      if (key != "choices")
        return read_member(key);
      answer.json.array([&] { answer.json.object(read_member); });
    });
    if (scores.size() + 1 != tokens.size())
      answer.refuse("the response has no log-probs of the prompt");
    TEMPER_TRY_STATUS(answer.status());
    return scores;
  }

  /// [null, -1.5, ...]: log-probs of the prompt and of the tokens sampled after it.
  static void read_echoed(internal::ReplyReader& answer,
                          std::size_t tokens,
                          std::vector<float>& scores) {
    JsonCursor& json = answer.json;
    json.object([&](std::string_view key) {
      if (key != "token_logprobs" || json.next() != '[')
        return json.skip();
      std::size_t at = 0;
      json.array([&] {
        const std::size_t i = at++;
        if (i == 0 || i >= tokens || json.next() == 'n')
          return json.skip();
        answer.read_logprob(scores);
      });
    });
  }

  void read_choice(internal::ReplyReader& answer) const {
    JsonCursor& json = answer.json;
    bool ids = false;
    std::vector<std::int32_t> named;  // The tokens named in logprobs.
    json.object([&](std::string_view key) {
      if (key == "finish_reason") {
        answer.read_ended();
      } else if (key == "token_ids" && json.next() == '[') {
        ids = true;
        json.array([&] { answer.read_token(); });
      } else if (key == "logprobs" && json.next() == '{') {
        read_logprobs(answer, named);
      } else {
        json.skip();
      }
    });
    if (ids)
      return;
    if (named.size() != answer.reply.logprobs.size()) {
      answer.refuse(
          "the response has no token ids (token_ids, logprobs.content[].id, or logprobs.tokens as "
          "token_id:N)");
    }
    answer.reply.tokens = std::move(named);
  }
  void read_logprobs(internal::ReplyReader& answer, std::vector<std::int32_t>& named) const {
    JsonCursor& json = answer.json;
    const auto name = [&](std::int64_t token) { named.push_back(answer.token_of(token)); };
    json.object([&](std::string_view key) {
      if (key == "token_logprobs" && json.next() == '[') {
        json.array([&] { answer.read_logprob(answer.reply.logprobs); });
      } else if (key == "tokens" && json.next() == '[') {
        json.array([&] {
          if (const auto token = id_in(json.text()))
            name(*token);
        });
      } else if (key == "content" && json.next() == '[') {
        json.array([&] {
          json.object([&](std::string_view field) {
            if (field == "id")
              return name(json.integer());
            return field == "logprob" ? answer.read_logprob(answer.reply.logprobs) : json.skip();
          });
        });
      } else {
        json.skip();
      }
    });
  }
  /// "token_id:17"
  static std::optional<std::int64_t> id_in(std::string_view word) {
    constexpr std::string_view kBefore = "token_id:";
    std::int64_t token = 0;
    if (!word.starts_with(kBefore))
      return std::nullopt;
    const char* const begin = word.data() + kBefore.size();
    const char* const end = word.data() + word.size();
    const auto [at, error] = std::from_chars(begin, end, token);
    return error == std::errc() && at == end ? std::optional(token) : std::nullopt;
  }

  const Loading loading_;
  ServerCall reload_;
  Probe probe_ = Probe::Extended;
  bool extended_ = true;
  Scoring scoring_ = Scoring::Prompt;
  double forced_ = 0;
  std::optional<Error> cannot_generate_;
};

}  // namespace

std::unique_ptr<ServerApi> make_openai_api(const EngineConfig& config,
                                           const ServerSampling& sampling) {
  return std::make_unique<OpenaiApi>(config, sampling);
}

}  // namespace temper::actors
