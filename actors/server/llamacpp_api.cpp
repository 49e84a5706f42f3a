// llama.cpp's server (`llama-server`) through its route /completion. It loads weights only at its
// start, from a GGUF file (written by actors/model_folder/gguf.hpp). It cannot score a prompt, so
// the log-prob of a token is measured by forcing that token: the log-probs that it returns are
// those of the logits before any bias.
#include "actors/server/internal/answers.hpp"
#include "actors/server/internal/plain_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::actors {
namespace {

using internal::list_of;

constexpr double kForcedLogit = 1e4;

class LlamacppApi final : public PlainServerApi {
 public:
  explicit LlamacppApi(const ServerSampling& sampling)
      : PlainServerApi(sampling, "a llama.cpp server") {}

  Status accept_routes(const std::set<std::string>&) override {
    probed_ = false;
    return {};
  }
  std::optional<ServerCall> next_probe() const override {
    if (probed_)
      return std::nullopt;
    const std::vector<std::int32_t> tokens{sampling_.vocabulary - 1, 0};
    return generate({.id = {}, .tokens = tokens, .most = 1, .salt = {}});
  }
  Status learn(int status, std::string_view body) override {
    probed_ = true;
    const auto reply = read_generated(body);
    if (status == 200 && reply && reply->tokens.size() == 1 && reply->logprobs.size() == 1)
      return {};
    return invalid_input(fmt::format(
        "POST /completion of the llama.cpp server returns no token id with a log-prob (status {}: "
        "{}); use a newer llama-server, and the model.gguf in {{model}} as its GGUF file",
        status,
        status == 200 && !reply ? reply.error().context : std::string(body.substr(0, 200))));
  }

  bool stops_at_tokens() const override { return false; }
  ServerCall generate(const GenerateCall& call) const override {
    return completion(call.tokens,
                      call.most,
                      call.greedy ? 0.0 : sampling_.temperature,
                      sampling_.top_p,
                      plain() ? "" : R"("post_sampling_probs":true,)");
  }

  Result<GenerateReply> read_generated(std::string_view body) const override {
    return read_reply(body, LogprobOf::SampledToken);
  }
  Result<GenerateReply> read_reply(std::string_view body, LogprobOf logprobs) const {
    internal::ReplyReader answer(body, sampling_.vocabulary, logprobs);
    JsonCursor& json = answer.json;
    std::vector<std::int64_t> beside;  // The tokens to which the log-probs belong.
    json.object([&](std::string_view key) {
      if (key == "tokens" && json.next() == '[') {
        json.array([&] { answer.read_token(); });
      } else if (key == "completion_probabilities" && json.next() == '[') {
        json.array([&] { read_probability(answer, beside); });
      } else if (key == "stop_type") {
        read_stop_type(answer);
      } else {
        json.skip();
      }
    });
    const auto& tokens = answer.reply.tokens;
    // For a token that is a partial character the server omits the log-prob, which shifts the
    // following ones.
    if (!std::ranges::equal(beside, tokens))
      answer.refuse("the log-probs do not belong to the returned tokens");
    return answer.finish();
  }

  bool scores_at_once() const override { return false; }
  ServerCall score(std::span<const std::int32_t> tokens) const override {
    return completion(tokens.first(tokens.size() - 1),
                      1,
                      1.0,
                      1.0,
                      fmt::format(R"("logit_bias":[[{},{}]],)", tokens.back(), kForcedLogit));
  }
  Result<std::vector<float>> read_scores(std::string_view body,
                                         std::span<const std::int32_t> tokens) const override {
    TEMPER_TRY(const GenerateReply reply, read_reply(body, LogprobOf::ScoredToken));
    if (reply.tokens.size() != 1 || reply.logprobs.size() != 1 ||
        reply.tokens.front() != tokens.back())
      return corrupt(fmt::format("the server did not sample the forced token {}", tokens.back()));
    return reply.logprobs;
  }

  Loading loading() const override { return Loading::Restart; }
  std::vector<ServerCall> load(const std::string&, const std::string&) const override { return {}; }
  Status check_loaded(std::string_view) const override { return {}; }
  ServerLoad read_load(std::string_view metrics) const override {
    return {metric(metrics, "llamacpp:requests_processing").value_or(0),
            metric(metrics, "llamacpp:requests_deferred").value_or(0),
            0,
            0};
  }

 private:
  /// True if sampling uses the model's own distribution, whose log-probs the server returns by
  /// default.
  bool plain() const { return sampling_.temperature == 1 && sampling_.top_p == 1; }

  /// The server's defaults would change sampling, so every setting is sent.
  static ServerCall completion(std::span<const std::int32_t> tokens,
                               std::int64_t most,
                               double temperature,
                               double top_p,
                               std::string_view more) {
    return {"POST",
            "/completion",
            fmt::format(
                R"({{"prompt":{},"n_predict":{},"temperature":{},"top_p":{},"top_k":0,"min_p":0.0,)"
                R"("typical_p":1.0,"repeat_penalty":1.0,"presence_penalty":0.0,)"
                R"("frequency_penalty":0.0,"dry_multiplier":0.0,"xtc_probability":0.0,)"
                R"("mirostat":0,"samplers":["top_p","temperature"],"n_probs":1,{})"
                R"("return_tokens":true,"cache_prompt":true,"stream":false,)"
                R"("response_fields":["tokens","completion_probabilities","stop_type"]}})",
                list_of(tokens),
                most,
                temperature,
                top_p,
                more)};
  }

  /// {"id": 17, "logprob": -0.3, ...}, or "prob" for post-sampling probabilities.
  static void read_probability(internal::ReplyReader& answer, std::vector<std::int64_t>& beside) {
    JsonCursor& json = answer.json;
    json.object([&](std::string_view key) {
      if (key == "id") {
        beside.push_back(json.integer());
      } else if (key == "logprob") {
        answer.read_logprob(answer.reply.logprobs);
      } else if (key == "prob") {
        const double probability = json.number();
        if (json.good())
          answer.add_logprob(std::log(probability), answer.reply.logprobs);
      } else {
        json.skip();
      }
    });
  }

  static void read_stop_type(internal::ReplyReader& answer) {
    const std::string_view word = answer.json.text();
    if (word == "eos" || word == "limit")
      return answer.ended(word == "eos" ? GenerateReply::StopReason::End
                                        : GenerateReply::StopReason::Length);
    answer.refuse(fmt::format("unknown stop reason \"{}\"", word));
  }

  bool probed_ = false;
};

}  // namespace

std::unique_ptr<ServerApi> make_llamacpp_api(const ServerSampling& sampling) {
  return std::make_unique<LlamacppApi>(sampling);
}

}  // namespace temper::actors
