// SGLang's routes as documented for 0.5 ("SGLang for RL systems", "LoRA serving"). Weights are
// loaded from a folder with update_weights_from_disk, which also takes the label of the version.
// Adapters have a route of their own, are named in each request, and the label is set after them.
#include "actors/server/internal/answers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace temper::actors {
namespace {

using internal::list_of;

class SglangApi final : public ServerApi {
 public:
  explicit SglangApi(const ServerSampling& sampling) : ServerApi(sampling) {}

  Status accept_routes(const std::set<std::string>& routes) override {
    for (const char* const path :
         {"/generate", "/pause_generation", "/continue_generation", "/update_weights_from_disk"}) {
      if (!routes.empty() && !routes.contains(path))
        return invalid_input(fmt::format("the SGLang server has no {}; use a newer SGLang", path));
    }
    for (const char* const path :
         {"/load_lora_adapter", "/unload_lora_adapter", "/update_weight_version"}) {
      if (sampling_.adapters && !routes.empty() && !routes.contains(path)) {
        return invalid_input(fmt::format(
            "the SGLang server has no {}, which model.lora requires; use SGLang 0.5 or newer",
            path));
      }
    }
    // The route was renamed; use the old name if the server has only that.
    if (!routes.empty() && !routes.contains("/model_info") && routes.contains("/get_model_info"))
      version_route_ = "/get_model_info";
    return {};
  }

  /// Adapters have their routes whatever the flags of the server, which only its settings show.
  std::optional<ServerCall> next_probe() const override {
    if (!sampling_.adapters || probe_ == std::size(kSettingsRoutes))
      return std::nullopt;
    return ServerCall{"GET", kSettingsRoutes[probe_], {}};
  }
  Status learn(int status, std::string_view body) override {
    const nlohmann::json settings = status == kOk ? parse_json(body) : nlohmann::json();
    if (!settings.is_object()) {
      ++probe_;  // A server that shows its settings nowhere refuses the first adapter.
      return {};
    }
    probe_ = std::size(kSettingsRoutes);
    return check_adapter_flags(settings);
  }

  ServerCall generate(const GenerateCall& call) const override {
    return {"POST",
            "/generate",
            fmt::format(R"({{"rid":"{}",{}"input_ids":{},"return_logprob":true,"stream":false,)"
                        R"("sampling_params":{{"max_new_tokens":{},"temperature":{},"top_p":{},)"
                        R"("top_k":-1,"min_p":0.0,"stop_token_ids":{},)"
                        R"("skip_special_tokens":false,"no_stop_trim":true}}}})",
                        call.id,
                        adapter_field(),
                        list_of(call.tokens),
                        call.most,
                        call.greedy ? 0.0 : sampling_.temperature,
                        sampling_.top_p,
                        list_of(sampling_.ends_with(call.stops)))};
  }

  Result<GenerateReply> read_generated(std::string_view body) const override {
    internal::ReplyReader answer(body, sampling_.vocabulary);
    std::optional<std::string> last;  // Version of the last token.
    answer.json.object([&](std::string_view key) {
      if (key != "meta_info")
        return answer.json.skip();
      read_meta(answer, last);
    });
    // No weights are loaded while a request runs, so the last token's version applies to all
    // tokens.
    if (!answer.reply.runs && last)
      answer.label_all(*std::move(last));
    return answer.finish();
  }

  ServerCall score(std::span<const std::int32_t> tokens) const override {
    return {"POST",
            "/generate",
            fmt::format(R"({{{}"input_ids":{},"return_logprob":true,"logprob_start_len":0,)"
                        R"("stream":false,"sampling_params":{{"max_new_tokens":1,)"
                        R"("temperature":1.0}}}})",
                        adapter_field(),
                        list_of(tokens))};
  }

  Result<std::vector<float>> read_scores(std::string_view body,
                                         std::span<const std::int32_t> tokens) const override {
    internal::ReplyReader answer(body, sampling_.vocabulary, LogprobOf::ScoredToken);
    JsonCursor& json = answer.json;
    std::vector<float> scores;
    std::size_t at = 0;
    json.object([&](std::string_view key) {
      if (key != "meta_info")
        return json.skip();
      json.object([&](std::string_view field) {
        if (field != "input_token_logprobs")
          return json.skip();
        json.array([&] {
          const std::size_t i = at++;
          if (i == 0)
            return json.skip();
          read_pair(answer, scores, [&] {
            const std::int64_t token = json.integer();
            if (json.good() && i < tokens.size() && token != tokens[i])
              answer.refuse(
                  fmt::format("input_token_logprobs[{}]: expected token {}", i, tokens[i]));
          });
        });
      });
    });
    if (at != tokens.size())
      answer.refuse("input_token_logprobs: expected one entry per token");
    TEMPER_TRY_STATUS(answer.status());
    return scores;
  }

  std::optional<ServerCall> pause() const override {
    return ServerCall{"POST", "/pause_generation", R"({"mode":"abort"})"};
  }
  std::vector<ServerCall> abort(std::span<const std::string> ids) const override {
    if (ids.empty())
      return {{"POST", "/abort_request", R"({"abort_all":true})"}};
    std::vector<ServerCall> calls;
    for (const std::string& id : ids)
      calls.push_back({"POST", "/abort_request", fmt::format(R"({{"rid":"{}"}})", id)});
    return calls;
  }
  std::vector<ServerCall> load(const std::string& folder, const std::string& label) const override {
    if (sampling_.adapters)
      return load_adapter(folder, label);
    const nlohmann::json update = {{"model_path", folder},
                                   {"weight_version", label},
                                   {"abort_all_requests", true},
                                   {"flush_cache", true},
                                   {"keep_pause", true}};
    return {{"POST", "/flush_cache", {}}, {"POST", "/update_weights_from_disk", update.dump()}};
  }
  Status check_loaded(std::string_view body) const override {
    const nlohmann::json answer = parse_json(body);
    if (answer.is_object() && answer.value("success", nlohmann::json(true)) == false) {
      const char* const key = answer.contains("error_message") ? "error_message" : "message";
      return corrupt("the server reports: " + answer.value(key, nlohmann::json()).dump());
    }
    return {};
  }
  std::optional<ServerCall> unload(const std::string& label) const override {
    return ServerCall{
        "POST", "/unload_lora_adapter", fmt::format(R"({{"lora_name":"{}"}})", label)};
  }
  std::optional<ServerCall> resume() const override {
    return ServerCall{"POST", "/continue_generation", "{}"};
  }
  Result<std::vector<ServerCall>> release(ServerMemory what) const override {
    std::vector<ServerCall> calls;
    if (what == ServerMemory::KvCache)
      calls.push_back({"POST", "/flush_cache", {}});
    calls.push_back({"POST", "/release_memory_occupation", tag_of(what)});
    return calls;
  }
  std::vector<ServerCall> regain(ServerMemory what) const override {
    return {{"POST", "/resume_memory_occupation", tag_of(what)}};
  }
  /// The server does not report what it has released, and fails on a second resume.
  std::vector<ServerCall> wake() const override { return {}; }
  std::optional<ServerCall> version() const override {
    return ServerCall{"GET", version_route_, {}};
  }
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
  /// Settings of the server: the route of newer and of older releases.
  static constexpr const char* kSettingsRoutes[] = {"/server_info", "/get_server_info"};
  static constexpr int kOk = 200;

  /// The flags that the adapters of this run need.
  std::string adapter_flags() const {
    return fmt::format("--enable-lora --max-lora-rank {} --lora-target-modules {}",
                       sampling_.adapters->rank,
                       fmt::join(sampling_.adapters->targets, " "));
  }
  Status check_adapter_flags(const nlohmann::json& settings) const {
    const auto refuse = [&](std::string_view found) {
      return invalid_input(
          fmt::format("the SGLang server has {}, which does not fit model.lora; start it with {}",
                      found,
                      adapter_flags()));
    };
    if (settings.contains("enable_lora") && settings["enable_lora"] != true)
      return refuse("no --enable-lora");
    const auto rank = settings.find("max_lora_rank");
    if (rank != settings.end() && rank->is_number_integer() && *rank < sampling_.adapters->rank)
      return refuse(fmt::format("--max-lora-rank {}", rank->dump()));
    const auto targets = settings.find("lora_target_modules");
    if (targets == settings.end() || !targets->is_array())
      return {};
    const auto has = [&](const std::string& target) {
      return std::find(targets->begin(), targets->end(), target) != targets->end();
    };
    for (const std::string& target : sampling_.adapters->targets) {
      if (!has(target) && !has("all"))
        return refuse(fmt::format("no {} in its --lora-target-modules", target));
    }
    return {};
  }
  /// An adapter cannot be loaded twice under one name, so one of an earlier attempt is unloaded.
  std::vector<ServerCall> load_adapter(const std::string& folder, const std::string& label) const {
    ServerCall again = *unload(label);
    again.may_be_refused = true;
    const nlohmann::json adapter = {{"lora_name", label}, {"lora_path", folder}};
    const nlohmann::json version = {{"new_version", label}, {"abort_all_requests", false}};
    return {again,
            {"POST", "/load_lora_adapter", adapter.dump()},
            {"POST", "/flush_cache", {}},
            {"POST", "/update_weight_version", version.dump()}};
  }
  /// The field of a request that names its adapter, if there is one.
  std::string adapter_field() const {
    return adapter_.empty() ? std::string() : fmt::format(R"("lora_path":"{}",)", adapter_);
  }

  static std::string tag_of(ServerMemory what) {
    return fmt::format(R"({{"tags":["{}"]}})",
                       what == ServerMemory::Weights ? "weights" : "kv_cache");
  }

  static void read_meta(internal::ReplyReader& answer, std::optional<std::string>& last) {
    JsonCursor& json = answer.json;
    json.object([&](std::string_view key) {
      if (key == "finish_reason" && json.next() == '{') {
        json.object([&](std::string_view field) {
          return field == "type" ? answer.read_ended() : json.skip();
        });
      } else if (key == "output_token_logprobs" && json.next() == '[') {
        json.array([&] { read_pair(answer, answer.reply.logprobs, [&] { answer.read_token(); }); });
      } else if (key == "weight_versions") {
        answer.read_runs();
      } else if (key == "weight_version" && json.next() == '"') {
        last = json.text();
      } else {
        json.skip();
      }
    });
  }
  /// [log-prob, token, text]; `read_token` reads the second.
  template <class F>
  static void read_pair(internal::ReplyReader& answer,
                        std::vector<float>& logprobs,
                        F&& read_token) {
    int at = 0;
    answer.json.array([&] {
      switch (at++) {
        case 0:
          return answer.read_logprob(logprobs);
        case 1:
          return read_token();
        default:
          return answer.json.skip();
      }
    });
    if (at < 2)
      answer.refuse("expected a log-prob for each token");
  }

  std::string version_route_ = "/model_info";
  std::size_t probe_ = 0;  ///< Index of the next route for settings.
};

}  // namespace

std::unique_ptr<ServerApi> make_sglang_api(const ServerSampling& sampling) {
  return std::make_unique<SglangApi>(sampling);
}

}  // namespace temper::actors
