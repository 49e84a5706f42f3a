#include "sim_hw/model/hf_config.hpp"

#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/scalar_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace temper::sim_hw {
namespace {

using nlohmann::json;

struct Family {
  std::string_view type;
  bool experts = false;
  bool latent = false;
  bool qkv_bias = false;
  bool qk_norm = false;
};
constexpr std::array<Family, 10> kFamilies{{{"llama"},
                                            {"mistral"},
                                            {"mixtral", true},
                                            {"qwen2", false, false, true},
                                            {"qwen2_moe", true, false, true},
                                            {"qwen3", false, false, false, true},
                                            {"qwen3_moe", true, false, false, true},
                                            {"deepseek_v2", true, true},
                                            {"deepseek_v3", true, true},
                                            {"kimi_k2", true, true}}};

/// Reads keys and keeps the first error.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {}

  bool has(const char* key) const {
    const auto at = object_.find(key);
    return at != object_.end() && !at->is_null();
  }
  /// The first of these keys that exists; if none does, `otherwise` or an error.
  std::int64_t count(std::initializer_list<const char*> keys,
                     std::optional<std::int64_t> otherwise = {}) {
    for (const char* key : keys) {
      if (!has(key))
        continue;
      const json& value = object_[key];
      if (value.is_number_integer() && value.get<std::int64_t>() >= 0)
        return value.get<std::int64_t>();
      wrong(fmt::format("`{}` is {}, expected a count", key, value.dump()));
      return 1;
    }
    if (!otherwise)
      wrong(fmt::format("`{}` is missing; expected a count", *keys.begin()));
    return otherwise.value_or(1);
  }
  bool flag(const char* key) {
    if (!has(key))
      return false;
    if (object_[key].is_boolean())
      return object_[key].get<bool>();
    wrong(fmt::format("`{}` is {}, expected true or false", key, object_[key].dump()));
    return false;
  }
  std::string text(const char* key) const {
    return has(key) && object_[key].is_string() ? object_[key].get<std::string>() : "";
  }
  void wrong(std::string what) {
    if (wrong_.empty())
      wrong_ = std::move(what);
  }
  const std::string& first_wrong() const { return wrong_; }

 private:
  const json& object_;
  std::string wrong_;
};

Result<Family> family_of(const Reader& in) {
  const std::string type = in.text("model_type");
  const auto found = std::ranges::find(kFamilies, type, &Family::type);
  if (found != kFamilies.end())
    return *found;
  std::vector<std::string> known;
  known.reserve(kFamilies.size());
  for (const Family& family : kFamilies)
    known.emplace_back(family.type);
  return Error{
      ErrorCode::Unsupported,
      fmt::format("`model_type` is `{}`; supported: {}. Describe other models in YAML, like "
                  "the files in configs/models",
                  type,
                  quoted_list(known))};
}

LatentAttention latent_of(Reader& in, ModelSpec& model) {
  LatentAttention latent;
  latent.q_lora_rank = in.count({"q_lora_rank"});
  latent.kv_lora_rank = in.count({"kv_lora_rank"});
  latent.qk_nope_dim = in.count({"qk_nope_head_dim"});
  latent.qk_rope_dim = in.count({"qk_rope_head_dim"});
  model.head_dim = latent.qk_nope_dim + latent.qk_rope_dim;
  model.kv_heads = model.heads;
  model.v_head_dim = in.count({"v_head_dim"});
  return latent;
}

MixtureOfExperts experts_of(Reader& in, ModelSpec& model) {
  MixtureOfExperts moe;
  moe.experts = in.count({"num_experts", "n_routed_experts", "num_local_experts"});
  moe.top_k = in.count({"num_experts_per_tok"});
  moe.expert_ffn = in.count({"moe_intermediate_size", "intermediate_size"});
  if (in.has("shared_expert_intermediate_size")) {
    moe.shared_expert_ffn = in.count({"shared_expert_intermediate_size"});
    moe.shared_experts = moe.shared_expert_ffn > 0 ? 1 : 0;
  } else if (const std::int64_t shared = in.count({"n_shared_experts"}, 0); shared > 0) {
    moe.shared_experts = shared;
    moe.shared_expert_ffn = moe.expert_ffn;
  }
  moe.dense_layers = in.count({"first_k_dense_replace"}, 0);
  if (in.count({"decoder_sparse_step", "moe_layer_freq"}, 1) != 1)
    in.wrong("`decoder_sparse_step`: only some layers have experts, which is not modeled");
  model.mtp_layers = in.count({"num_nextn_predict_layers"}, 0);
  return moe;
}

}  // namespace

Result<ModelSpec> model_of_config(std::string_view text, const std::string& name) {
  const json document = parse_json(text);
  if (document.is_discarded() || !document.is_object())
    return invalid_input("expected a JSON object");
  Reader in(document);
  TEMPER_TRY(const Family family, family_of(in));
  ModelSpec model;
  model.name = name;
  model.source = "config.json";
  model.layers = in.count({"num_hidden_layers"});
  model.hidden = in.count({"hidden_size"});
  model.heads = in.count({"num_attention_heads"});
  model.kv_heads = in.count({"num_key_value_heads"}, model.heads);
  model.ffn = in.count({"intermediate_size"});
  model.vocabulary = in.count({"vocab_size"});
  model.max_position = in.count({"max_position_embeddings"}, 0);
  model.tie_embeddings = in.flag("tie_word_embeddings");
  model.qkv_bias = family.qkv_bias || in.flag("attention_bias");
  model.qk_norm = family.qk_norm;
  model.head_dim = in.count({"head_dim"}, model.hidden / std::max<std::int64_t>(1, model.heads));
  if (family.latent)
    model.latent = latent_of(in, model);
  if (family.experts)
    model.moe = experts_of(in, model);
  if (in.flag("use_sliding_window") || (family.type == "mistral" && in.has("sliding_window")))
    in.wrong("`sliding_window`: windowed attention is not modeled");
  if (in.has("mlp_only_layers") && !document["mlp_only_layers"].empty())
    in.wrong("`mlp_only_layers`: only some layers have experts, which is not modeled");
  if (!in.first_wrong().empty())
    return invalid_input(in.first_wrong());
  return model;
}

Result<ModelSpec> model_of_config_file(const std::filesystem::path& path) {
  std::error_code failed;
  const bool folder = std::filesystem::is_directory(path, failed);
  const std::filesystem::path file = folder ? path / "config.json" : path;
  TEMPER_TRY(const std::string text, read_file(file));
  const auto whole = std::filesystem::weakly_canonical(file, failed);
  const std::string stem = file.stem().string();
  Result<ModelSpec> model =
      model_of_config(text, stem == "config" ? whole.parent_path().filename().string() : stem);
  if (!model)
    return std::move(model).error().within(file.string());
  return model;
}

}  // namespace temper::sim_hw
