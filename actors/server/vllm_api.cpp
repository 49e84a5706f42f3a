// vLLM's routes as of release 0.32. Weights are loaded from a folder with the worker method
// reload_weights, adapters by their own route; the label of a version is the server's weight
// version.
#include "actors/server/internal/answers.hpp"

#include <fmt/format.h>

namespace temper::actors {
namespace {

using internal::list_of;

/// Prefix that the server adds to the id of a request.
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
          "the vLLM server has no /inference/v1/generate; start it with --enable-scale-out");
    }
    for (const char* const path : {"/pause", "/resume", "/collective_rpc"}) {
      if (missing(path)) {
        return invalid_input(
            fmt::format("the vLLM server has no {}; start it with VLLM_SERVER_DEV_MODE=1", path));
      }
    }
    if (missing("/update_weight_version") || missing("/weight_info")) {
      return invalid_input(
          "the vLLM server does not report its weights (no /weight_info); use a newer "
          "vLLM");
    }
    if (sampling_.adapters && missing("/v1/load_lora_adapter")) {
      return invalid_input(fmt::format(
          "the vLLM server has no /v1/load_lora_adapter, which model.lora requires; start it with "
          "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 and --enable-lora --max-lora-rank {} --max-loras 2",
          sampling_.adapters->rank));
    }
    return {};
  }

  ServerCall generate(const GenerateCall& call) const override {
    return {"POST",
            "/inference/v1/generate",
            fmt::format(R"({{"request_id":"{}","model":"{}","token_ids":{},"cache_salt":"{}",)"
                        R"("sampling_params":{{"n":1,"max_tokens":{},"temperature":{},"top_p":{},)"
                        R"("top_k":-1,"min_p":0.0,"stop_token_ids":{},"logprobs":0,)"
                        R"("skip_special_tokens":false,"detokenize":false}},"stream":false}})",
                        call.id,
                        model(),
                        list_of(call.tokens),
                        call.salt,
                        call.most,
                        call.greedy ? 0.0 : sampling_.temperature,
                        sampling_.top_p,
                        list_of(sampling_.ends_with(call.stops)))};
  }

  Result<GenerateReply> read_generated(std::string_view body) const override {
    internal::ReplyReader answer(body, sampling_.vocabulary);
    answer.read_only_choice([&] { read_choice(answer); });
    return answer.finish();
  }

  /// vLLM 0.32 ends if it computes prompt_logprobs with an adapter while it generates: it applies
  /// the adapters of the sampled tokens to the rows of the prompt.
  bool scores_while_generating() const override { return !sampling_.adapters; }
  ServerCall score(std::span<const std::int32_t> tokens) const override {
    return {"POST",
            "/inference/v1/generate",
            fmt::format(R"({{"model":"{}","token_ids":{},"sampling_params":{{"n":1,"max_tokens":1,)"
                        R"("temperature":1.0,"prompt_logprobs":1,"detokenize":false}},)"
                        R"("stream":false}})",
                        model(),
                        list_of(tokens))};
  }

  Result<std::vector<float>> read_scores(std::string_view body,
                                         std::span<const std::int32_t> tokens) const override {
    internal::ReplyReader answer(body, sampling_.vocabulary, LogprobOf::ScoredToken);
    std::vector<float> scores;
    answer.json.object([&](std::string_view key) {
      return key == "prompt_logprobs" ? answer.read_prompt_logprobs(tokens, scores)
                                      : answer.json.skip();
    });
    if (scores.size() + 1 != tokens.size())
      answer.refuse("the response has no prompt_logprobs");
    TEMPER_TRY_STATUS(answer.status());
    return scores;
  }

  std::optional<ServerCall> pause() const override {
    return ServerCall{"POST", "/pause?mode=abort&clear_cache=true", {}};
  }
  std::vector<ServerCall> abort(std::span<const std::string> ids) const override {
    std::string list;
    for (const std::string& id : ids)
      list += fmt::format("{}\"{}{}\"", list.empty() ? "" : ",", kIdPrefix, id);
    return {{"POST", "/abort_requests", fmt::format(R"({{"request_ids":[{}]}})", list)}};
  }
  std::vector<ServerCall> load(const std::string& folder, const std::string& label) const override {
    const nlohmann::json reload = {{"method", "reload_weights"},
                                   {"kwargs", {{"weights_path", folder}}}};
    const nlohmann::json adapter = {
        {"lora_name", label}, {"lora_path", folder}, {"load_inplace", true}};
    return {sampling_.adapters ? ServerCall{"POST", "/v1/load_lora_adapter", adapter.dump()}
                               : ServerCall{"POST", "/collective_rpc", reload.dump()},
            {"POST", "/reset_prefix_cache", {}},
            {"POST", "/update_weight_version", fmt::format(R"({{"new_version":"{}"}})", label)}};
  }
  std::optional<ServerCall> unload(const std::string& label) const override {
    return ServerCall{
        "POST", "/v1/unload_lora_adapter", fmt::format(R"({{"lora_name":"{}"}})", label)};
  }
  Status check_loaded(std::string_view) const override { return {}; }
  std::optional<ServerCall> resume() const override { return ServerCall{"POST", "/resume", {}}; }
  /// Sleep releases both kinds at once. At level 2 the host keeps no copy of the weights.
  Result<std::vector<ServerCall>> release(ServerMemory what) const override {
    std::vector<ServerCall> calls;
    if (what == ServerMemory::Weights)
      calls.push_back({"POST", "/sleep?level=2&mode=abort", {}});
    return calls;
  }
  std::vector<ServerCall> regain(ServerMemory what) const override {
    const bool weights = what == ServerMemory::Weights;
    return {{"POST", weights ? "/wake_up?tags=weights" : "/wake_up?tags=kv_cache", {}}};
  }
  std::vector<ServerCall> wake() const override { return {{"POST", "/wake_up", {}}}; }
  std::optional<ServerCall> version() const override {
    return ServerCall{"GET", "/weight_info", {}};
  }
  Result<std::string> read_version(std::string_view body) const override {
    return internal::version_of(body, "/weight_info");
  }

  ServerLoad read_load(std::string_view metrics) const override {
    return {metric(metrics, "vllm:num_requests_running").value_or(0),
            metric(metrics, "vllm:num_requests_waiting").value_or(0),
            metric(metrics, "vllm:kv_cache_usage_perc").value_or(0),
            metric(metrics, "vllm:num_preemptions_total").value_or(0)};
  }

 private:
  static void read_choice(internal::ReplyReader& answer) {
    JsonCursor& json = answer.json;
    json.object([&](std::string_view key) {
      if (key == "finish_reason") {
        answer.read_ended();
      } else if (key == "token_ids") {
        json.array([&] { answer.read_token(); });
      } else if (key == "weight_versions") {
        answer.read_runs();
      } else if (key == "logprobs" && json.next() == '{') {
        read_logprobs(answer);
      } else {
        json.skip();
      }
    });
  }
  static void read_logprobs(internal::ReplyReader& answer) {
    JsonCursor& json = answer.json;
    json.object([&](std::string_view key) {
      if (key != "content")
        return json.skip();
      json.array([&] {
        json.object([&](std::string_view field) {
          return field == "logprob" ? answer.read_logprob(answer.reply.logprobs) : json.skip();
        });
      });
    });
  }
};

}  // namespace

std::unique_ptr<ServerApi> make_vllm_api(const ServerSampling& sampling) {
  return std::make_unique<VllmApi>(sampling);
}

}  // namespace temper::actors
