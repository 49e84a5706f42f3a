// vLLM's routes, as its release 0.32 has them. Weights come from a folder through the worker's own
// reload_weights; the label of a version is the server's weight version.
#include "actors/server/internal/answers.hpp"

#include <fmt/format.h>

namespace temper::actors {
namespace {

using internal::list_of;
using internal::object_of;

/// What the server puts before the id that we give a request.
constexpr std::string_view kIdPrefix = "generate-tokens-";

class VllmApi final : public ServerApi {
 public:
  explicit VllmApi(const ServerSampling& sampling) : ServerApi(sampling) {}

  Status accept_routes(const std::set<std::string>& routes) override {
    const auto missing = [&](const char* path) {
      return !routes.empty() && !routes.contains(path);
    };
    if (missing("/inference/v1/generate")) {
      return invalid_input(
          "the vLLM server has no /inference/v1/generate: start it with --enable-scale-out");
    }
    for (const char* const path : {"/pause", "/resume", "/collective_rpc"}) {
      if (missing(path)) {
        return invalid_input(fmt::format(
            "the vLLM server has no {}: start it with VLLM_SERVER_DEV_MODE=1 set", path));
      }
    }
    if (missing("/update_weight_version") || missing("/weight_info")) {
      return invalid_input(
          "the vLLM server does not say which weights it has (no /weight_info): needs a newer "
          "vLLM");
    }
    return {};
  }

  ServerCall generate(const GenerateCall& call) const override {
    return {"POST",
            "/inference/v1/generate",
            fmt::format(R"({{"request_id":"{}","model":"{}","token_ids":{},"cache_salt":"{}",)"
                        R"("sampling_params":{{"n":1,"max_tokens":{},"temperature":{},"top_p":{},)"
                        R"("top_k":-1,"min_p":0.0,"stop_token_ids":[{}],"logprobs":0,)"
                        R"("skip_special_tokens":false,"detokenize":false}},"stream":false}})",
                        call.id,
                        sampling_.model,
                        list_of(call.tokens),
                        call.salt,
                        call.most,
                        call.greedy ? 0.0 : sampling_.temperature,
                        sampling_.top_p,
                        sampling_.end_token)};
  }

  Result<GenerateReply> read_generated(std::string_view body) const override {
    TEMPER_TRY(const nlohmann::json answer, object_of(body));
    const auto choices = answer.find("choices");
    if (choices == answer.end() || !choices->is_array() || choices->size() != 1)
      return corrupt("not one choice in the answer");
    const nlohmann::json& choice = choices->front();
    if (!choice.is_object())
      return corrupt("a choice that is no object");
    GenerateReply reply;
    TEMPER_TRY(reply.ended, internal::ended_of(choice.value("finish_reason", nlohmann::json())));
    for (const auto& token : choice.value("token_ids", nlohmann::json::array())) {
      TEMPER_TRY(const std::int32_t id, internal::token_of(token, sampling_.vocabulary));
      reply.tokens.push_back(id);
    }
    const nlohmann::json logprobs = choice.value("logprobs", nlohmann::json());
    if (logprobs.is_object()) {
      for (const auto& entry : logprobs.value("content", nlohmann::json::array())) {
        if (!entry.is_object())
          return corrupt("a log-prob that is no object");
        TEMPER_TRY(const float value,
                   internal::logprob_of(entry.value("logprob", nlohmann::json())));
        reply.logprobs.push_back(value);
      }
    }
    TEMPER_TRY(
        reply.runs,
        internal::runs_of(choice.value("weight_versions", nlohmann::json()), reply.tokens.size()));
    return reply;
  }

  ServerCall score(std::span<const std::int32_t> tokens) const override {
    return {"POST",
            "/inference/v1/generate",
            fmt::format(R"({{"model":"{}","token_ids":{},"sampling_params":{{"n":1,"max_tokens":1,)"
                        R"("temperature":1.0,"prompt_logprobs":1,"detokenize":false}},)"
                        R"("stream":false}})",
                        sampling_.model,
                        list_of(tokens))};
  }

  Result<std::vector<float>> read_scores(std::string_view body,
                                         std::span<const std::int32_t> tokens) const override {
    TEMPER_TRY(const nlohmann::json answer, object_of(body));
    const nlohmann::json all = answer.value("prompt_logprobs", nlohmann::json());
    if (!all.is_array() || all.size() != tokens.size())
      return corrupt("prompt_logprobs has not one entry per token");
    std::vector<float> scores;
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      const std::string key = std::to_string(tokens[i]);
      if (!all[i].is_object() || !all[i].contains(key) || !all[i][key].is_object())
        return corrupt(fmt::format("prompt_logprobs[{}] has no entry for token {}", i, key));
      TEMPER_TRY(const float value,
                 internal::logprob_of(all[i][key].value("logprob", nlohmann::json())));
      scores.push_back(value);
    }
    return scores;
  }

  ServerCall pause() const override { return {"POST", "/pause?mode=abort&clear_cache=true", {}}; }
  std::vector<ServerCall> abort(std::span<const std::string> ids) const override {
    std::string list;
    for (const std::string& id : ids)
      list += fmt::format("{}\"{}{}\"", list.empty() ? "" : ",", kIdPrefix, id);
    return {{"POST", "/abort_requests", fmt::format(R"({{"request_ids":[{}]}})", list)}};
  }
  std::vector<ServerCall> load(const std::string& folder, const std::string& label) const override {
    const nlohmann::json reload = {{"method", "reload_weights"},
                                   {"kwargs", {{"weights_path", folder}}}};
    return {{"POST", "/collective_rpc", reload.dump()},
            {"POST", "/reset_prefix_cache", {}},
            {"POST", "/update_weight_version", fmt::format(R"({{"new_version":"{}"}})", label)}};
  }
  Status check_loaded(std::string_view) const override { return {}; }
  ServerCall resume() const override { return {"POST", "/resume", {}}; }
  ServerCall version() const override { return {"GET", "/weight_info", {}}; }
  Result<std::string> read_version(std::string_view body) const override {
    return internal::version_of(body, "/weight_info");
  }

  ServerLoad read_load(std::string_view metrics) const override {
    return {metric(metrics, "vllm:num_requests_running").value_or(0),
            metric(metrics, "vllm:num_requests_waiting").value_or(0),
            metric(metrics, "vllm:kv_cache_usage_perc").value_or(0),
            metric(metrics, "vllm:num_preemptions_total").value_or(0)};
  }
};

}  // namespace

std::unique_ptr<ServerApi> make_vllm_api(const ServerSampling& sampling) {
  return std::make_unique<VllmApi>(sampling);
}

}  // namespace temper::actors
