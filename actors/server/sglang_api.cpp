// SGLang's routes, as its documentation of 0.5 has them ("SGLang for RL systems"). Weights come
// from a folder by update_weights_from_disk, which also takes the label of the version.
#include "actors/server/internal/answers.hpp"

#include <fmt/format.h>

namespace temper::actors {
namespace {

using internal::list_of;
using internal::object_of;

class SglangApi final : public ServerApi {
 public:
  explicit SglangApi(const ServerSampling& sampling) : ServerApi(sampling) {}

  Status accept_routes(const std::set<std::string>& routes) override {
    for (const char* const path :
         {"/generate", "/pause_generation", "/continue_generation", "/update_weights_from_disk"}) {
      if (!routes.empty() && !routes.contains(path))
        return invalid_input(
            fmt::format("the SGLang server has no {}: needs a newer SGLang", path));
    }
    // Renamed; the older name is kept where only that is there.
    if (!routes.empty() && !routes.contains("/model_info") && routes.contains("/get_model_info"))
      version_route_ = "/get_model_info";
    return {};
  }

  ServerCall generate(const GenerateCall& call) const override {
    return {"POST",
            "/generate",
            fmt::format(R"({{"rid":"{}","input_ids":{},"return_logprob":true,"stream":false,)"
                        R"("sampling_params":{{"max_new_tokens":{},"temperature":{},"top_p":{},)"
                        R"("top_k":-1,"min_p":0.0,"stop_token_ids":[{}],)"
                        R"("skip_special_tokens":false,"no_stop_trim":true}}}})",
                        call.id,
                        list_of(call.tokens),
                        call.most,
                        call.greedy ? 0.0 : sampling_.temperature,
                        sampling_.top_p,
                        sampling_.end_token)};
  }

  Result<GenerateReply> read_generated(std::string_view body) const override {
    TEMPER_TRY(const nlohmann::json answer, object_of(body));
    TEMPER_TRY(const nlohmann::json meta, meta_of(answer));
    GenerateReply reply;
    const nlohmann::json finish = meta.value("finish_reason", nlohmann::json());
    TEMPER_TRY(reply.ended,
               internal::ended_of(finish.is_object() ? finish.value("type", nlohmann::json())
                                                     : nlohmann::json()));
    TEMPER_TRY_STATUS(
        read_pairs(meta.value("output_token_logprobs", nlohmann::json::array()), reply));
    if (meta.contains("weight_versions")) {
      TEMPER_TRY(reply.runs, internal::runs_of(meta["weight_versions"], reply.tokens.size()));
    } else if (meta.contains("weight_version") && meta["weight_version"].is_string()) {
      // That of the last token; nothing is loaded while we wait for an answer, so it is of all.
      reply.runs = {{meta["weight_version"].get<std::string>(), reply.tokens.size()}};
    }
    return reply;
  }

  ServerCall score(std::span<const std::int32_t> tokens) const override {
    return {"POST",
            "/generate",
            fmt::format(R"({{"input_ids":{},"return_logprob":true,"logprob_start_len":0,)"
                        R"("stream":false,"sampling_params":{{"max_new_tokens":1,)"
                        R"("temperature":1.0}}}})",
                        list_of(tokens))};
  }

  Result<std::vector<float>> read_scores(std::string_view body,
                                         std::span<const std::int32_t> tokens) const override {
    TEMPER_TRY(const nlohmann::json answer, object_of(body));
    TEMPER_TRY(const nlohmann::json meta, meta_of(answer));
    const nlohmann::json all = meta.value("input_token_logprobs", nlohmann::json());
    if (!all.is_array() || all.size() != tokens.size())
      return corrupt("input_token_logprobs has not one entry per token");
    std::vector<float> scores;
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      if (!all[i].is_array() || all[i].size() < 2 || all[i][1] != tokens[i])
        return corrupt(fmt::format("input_token_logprobs[{}] is not of token {}", i, tokens[i]));
      TEMPER_TRY(const float value, internal::logprob_of(all[i][0]));
      scores.push_back(value);
    }
    return scores;
  }

  ServerCall pause() const override { return {"POST", "/pause_generation", R"({"mode":"abort"})"}; }
  std::vector<ServerCall> abort(std::span<const std::string> ids) const override {
    if (ids.empty())
      return {{"POST", "/abort_request", R"({"abort_all":true})"}};
    std::vector<ServerCall> calls;
    for (const std::string& id : ids)
      calls.push_back({"POST", "/abort_request", fmt::format(R"({{"rid":"{}"}})", id)});
    return calls;
  }
  std::vector<ServerCall> load(const std::string& folder, const std::string& label) const override {
    const nlohmann::json update = {{"model_path", folder},
                                   {"weight_version", label},
                                   {"abort_all_requests", true},
                                   {"flush_cache", true},
                                   {"keep_pause", true}};
    return {{"POST", "/flush_cache", {}}, {"POST", "/update_weights_from_disk", update.dump()}};
  }
  Status check_loaded(std::string_view body) const override {
    const nlohmann::json answer = parse_json(body);
    if (answer.is_object() && answer.value("success", nlohmann::json(true)) == false)
      return corrupt("the server says: " + answer.value("message", nlohmann::json()).dump());
    return {};
  }
  ServerCall resume() const override { return {"POST", "/continue_generation", "{}"}; }
  ServerCall version() const override { return {"GET", version_route_, {}}; }
  Result<std::string> read_version(std::string_view body) const override {
    return internal::version_of(body, version_route_);
  }

  ServerLoad read_load(std::string_view metrics) const override {
    return {metric(metrics, "sglang:num_running_reqs").value_or(0),
            metric(metrics, "sglang:num_queue_reqs").value_or(0),
            metric(metrics, "sglang:token_usage").value_or(0),
            metric(metrics, "sglang:num_retracted_reqs").value_or(0)};
  }

 private:
  static Result<nlohmann::json> meta_of(const nlohmann::json& answer) {
    nlohmann::json meta = answer.value("meta_info", nlohmann::json());
    if (!meta.is_object())
      return corrupt("no meta_info in the answer");
    return meta;
  }

  /// [[log-prob, token, text], ...]
  Status read_pairs(const nlohmann::json& pairs, GenerateReply& reply) const {
    for (const auto& pair : pairs) {
      if (!pair.is_array() || pair.size() < 2)
        return corrupt("an output token without its log-prob");
      TEMPER_TRY(const float logprob, internal::logprob_of(pair[0]));
      TEMPER_TRY(const std::int32_t token, internal::token_of(pair[1], sampling_.vocabulary));
      reply.logprobs.push_back(logprob);
      reply.tokens.push_back(token);
    }
    return {};
  }

  std::string version_route_ = "/model_info";
};

}  // namespace

std::unique_ptr<ServerApi> make_sglang_api(const ServerSampling& sampling) {
  return std::make_unique<SglangApi>(sampling);
}

}  // namespace temper::actors
