#include "actors/model_folder/config_keys.hpp"

#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::actors {
namespace {

struct IgnoredKeys {
  std::string_view reason;
  std::string_view keys;  ///< Separated, preceded and followed by spaces.
};
/// Keys that do not change what the network computes. Only those of the first group are read.
constexpr std::array kIgnoredKeys{
    IgnoredKeys{"read by their own functions",
                " architectures eos_token_id head_dim hidden_size intermediate_size "
                "max_position_embeddings model_type num_attention_heads num_hidden_layers "
                "num_key_value_heads rms_norm_eps rope_parameters rope_scaling rope_theta "
                "tie_word_embeddings vocab_size "},
    IgnoredKeys{"the type of each stored tensor is in its file",
                " dtype torch_dtype use_bfloat16 "},
    IgnoredKeys{"only with `use_sliding_window`, which must be false",
                " max_window_layers sliding_window "},
    IgnoredKeys{"where the file came from, and which library reads it",
                " auto_map base_model finetuning_task is_llama_config language license "
                "model_name name prefix tokenizer_class unsloth_fixed "},
    IgnoredKeys{"how a library computes the same numbers",
                " attn_implementation cache_implementation chunk_size_feed_forward "
                "gradient_checkpointing pretraining_tp tensor_parallel_plan torchscript use_cache "
                "use_flash_attention use_flash_attn use_flash_attention_2 use_return_dict "},
    IgnoredKeys{"how the weights were first drawn, or once trained",
                " init_std initializer_factor initializer_range neftune_noise_alpha "
                "router_aux_loss_coef tf_legacy_loss z_loss_coefficient "},
    IgnoredKeys{"defaults of a generation, which the run chooses",
                " bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping "
                "encoder_no_repeat_ngram_size exponential_decay_length_penalty length_penalty "
                "max_length max_new_tokens min_length min_p no_repeat_ngram_size num_beam_groups "
                "num_beams num_return_sequences remove_invalid_values repetition_penalty "
                "suppress_tokens temperature top_k top_p typical_p "},
    IgnoredKeys{"what a library returns, or the labels of a classifier",
                " id2label is_decoder label2id num_labels output_attentions output_hidden_states "
                "output_scores problem_type return_dict return_dict_in_generate "
                "cross_attention_hidden_size task_specific_params tie_encoder_decoder "}};

/// More such keys, by pattern; `*` matches anything.
constexpr std::array<std::string_view, 9> kIgnoredForms{
    "_*",          // internal to a library
    "*_token_id",  // end tokens are read separately; the others belong to the tokenizer
    "*_token_ids",
    "*dropout",  // training uses no dropout
    "*_dropout_prob",
    "*_pdrop",
    "transformers*",
    "unsloth_*",
    "quantization_version"};

bool has_form(std::string_view key, std::string_view form) {
  if (form.starts_with('*'))
    return key.ends_with(form.substr(1));
  return form.ends_with('*') ? key.starts_with(form.substr(0, form.size() - 1)) : key == form;
}

bool cannot_matter(std::string_view key) {
  if (key.find(' ') != std::string_view::npos)
    return false;
  const std::string word = fmt::format(" {} ", key);
  return std::ranges::any_of(kIgnoredKeys,
                             [&](const IgnoredKeys& group) {
                               return group.keys.find(word) != std::string_view::npos;
                             }) ||
         std::ranges::any_of(kIgnoredForms,
                             [&](std::string_view form) { return has_form(key, form); });
}

/// A key that changes the computation: it must be null, absent, or have one of these values.
struct Fixed {
  std::string_view key;
  std::vector<nlohmann::json> values;  ///< Empty: no value is supported.
  std::string_view reason;
};
const std::vector<Fixed>& fixed_settings() {
  static const nlohmann::json kNone = nlohmann::json::object();
  static const std::vector<Fixed> list{
      {"hidden_act", {"silu", "swish"}, "the feed-forward layer is SwiGLU"},
      {"hidden_activation", {"silu", "swish"}, "the feed-forward layer is SwiGLU"},
      {"mlp_hidden_act", {"silu", "swish"}, "the feed-forward layer is SwiGLU"},
      {"attention_bias", {false}, "only Qwen2 has biases in its attention, and always"},
      {"qkv_bias", {false}, "only Qwen2 has biases in its attention, and always"},
      {"use_qkv_bias", {false}, "only Qwen2 has biases in its attention, and always"},
      {"attention_out_bias", {false}, "the output of attention has no bias"},
      {"mlp_bias", {false}, "the feed-forward layer has no biases"},
      {"use_bias", {false}, "no layer has biases"},
      {"lm_head_bias", {false}, "the head has no bias"},
      {"qk_norm", {false}, "only Qwen3 normalizes queries and keys, and always"},
      {"use_qk_norm", {false}, "only Qwen3 normalizes queries and keys, and always"},
      {"qk_layernorm", {false}, "only Qwen3 normalizes queries and keys, and always"},
      {"partial_rotary_factor", {1}, "all of a head is rotated"},
      {"rotary_pct", {1}, "all of a head is rotated"},
      {"rope_interleaved", {false}, "the halves of a head are rotated, not neighbors"},
      {"rope_traditional", {false}, "the halves of a head are rotated, not neighbors"},
      {"position_embedding_type", {"rope", "rotary"}, "positions are rotary"},
      {"use_rope", {true}, "positions are rotary"},
      {"no_rope_layers", {kNone, nlohmann::json::array()}, "positions are rotary in every layer"},
      {"no_rope_layer_interval", {}, "positions are rotary in every layer"},
      {"alibi", {false}, "positions are rotary"},
      {"use_sliding_window", {false}, "attention is full"},
      {"sliding_window_pattern", {}, "attention is full"},
      {"attention_chunk_size", {}, "attention is full"},
      {"is_causal", {true}, "attention is causal"},
      {"use_bidirectional_attention", {false}, "attention is causal"},
      {"is_encoder_decoder", {false}, "there is only a decoder"},
      {"add_cross_attention", {false}, "there is only a decoder"},
      {"pruned_heads", {kNone}, "every layer has all of its heads"},
      {"norm_type", {"rms_norm", "rmsnorm"}, "norms are RMSNorm"},
      {"layer_norm_eps", {}, "norms are RMSNorm"},
      {"layer_norm_epsilon", {}, "norms are RMSNorm"},
      {"parallel_residual", {false}, "attention and feed-forward are one after the other"},
      {"use_parallel_residual", {false}, "attention and feed-forward are one after the other"},
      {"attention_multiplier", {}, "scores are scaled by the root of the head's width"},
      {"query_pre_attn_scalar", {}, "scores are scaled by the root of the head's width"},
      {"embedding_multiplier", {1}, "embeddings are not scaled"},
      {"scale_emb", {1}, "embeddings are not scaled"},
      {"residual_multiplier", {1}, "residuals are not scaled"},
      {"scale_depth", {}, "residuals are not scaled"},
      {"logit_scale", {1}, "logits are not scaled"},
      {"logits_scaling", {1}, "logits are not scaled"},
      {"attn_logit_softcapping", {}, "scores are not capped"},
      {"final_logit_softcapping", {}, "logits are not capped"},
      {"clip_qkv", {}, "queries, keys and values are not clipped"},
      {"num_experts", {0}, "there are no experts"},
      {"num_local_experts", {0}, "there are no experts"},
      {"n_routed_experts", {0}, "there are no experts"},
      {"num_nextn_predict_layers", {0}, "one token is predicted at a time"},
      {"q_lora_rank", {}, "attention is grouped-query"},
      {"kv_lora_rank", {}, "attention is grouped-query"}};
  return list;
}

/// Quantized weights are rejected by the type of their tensors, not here.
bool is_quantization(std::string_view key) {
  return key == "quantization_config" || key == "compression_config";
}

/// The part of a quantization_config that changes the computation even with plain stored weights:
/// rounding at run time. Empty if there is none.
std::string_view rounded_at_run_time(const nlohmann::json& value) {
  constexpr std::array<std::string_view, 5> kKeys{"input_activations",
                                                  "output_activations",
                                                  "activation_scheme",
                                                  "kv_cache_scheme",
                                                  "kv_cache_quant_algo"};
  if (!value.is_structured())
    return {};
  if (value.is_object()) {
    // These layers round activations, although their weights may be stored unrounded.
    const auto method = value.find("quant_method");
    if (method != value.end() && (*method == "bitnet" || *method == "fp_quant"))
      return "quant_method";
    for (const std::string_view key : kKeys) {
      if (const auto at = value.find(key); at != value.end() && !at->is_null())
        return key;
    }
  }
  for (const nlohmann::json& inner : value) {
    if (const std::string_view found = rounded_at_run_time(inner); !found.empty())
      return found;
  }
  return {};
}

/// True for null, false, [] and {}: the key is off, whatever it means.
bool is_off(const nlohmann::json& value) {
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

/// The reason for rejecting the value; empty if it is supported.
std::string refusal_of(const Fixed& fixed, const nlohmann::json& value) {
  if (std::ranges::find(fixed.values, value) != fixed.values.end())
    return {};
  return fmt::format(
      "`{}` is {}, which is not supported ({}){}",
      fixed.key,
      value.dump(),
      fixed.reason,
      fixed.values.empty() ? "" : fmt::format("; expected {}", fixed.values.front().dump()));
}

/// The reason for rejecting `layer_types`; empty if attention is full in every layer.
std::string refusal_of_layers(const nlohmann::json& types) {
  const auto other = [](const nlohmann::json& type) { return type != "full_attention"; };
  const auto found = std::ranges::find_if(types, other);
  if (types.is_array() && found == types.end())
    return {};
  return fmt::format(
      "`layer_types` has {}, which is not supported (attention is full); expected full_attention",
      types.is_array() ? found->dump() : types.dump());
}

/// The reason for rejecting the key; empty if there is none.
std::string refusal_of(const std::string& key, const nlohmann::json& value) {
  const auto fixed = std::ranges::find(fixed_settings(), key, &Fixed::key);
  if (fixed != fixed_settings().end())
    return refusal_of(*fixed, value);
  if (key == "layer_types")
    return refusal_of_layers(value);
  const std::string_view rounded = is_quantization(key) ? rounded_at_run_time(value) : "";
  if (!rounded.empty()) {
    return fmt::format(
        "`{}.{}` is set, which is not supported (activations are float32)", key, rounded);
  }
  return {};
}

}  // namespace

JudgedKey judge_key(const std::string& key, const nlohmann::json& value) {
  using Effect = JudgedKey::Effect;
  if (value.is_null())
    return {};
  if (std::string why = refusal_of(key, value); !why.empty())
    return {Effect::Refused, std::move(why)};
  const bool known =
      std::ranges::find(fixed_settings(), key, &Fixed::key) != fixed_settings().end();
  if (known || key == "layer_types" || is_quantization(key) || cannot_matter(key) || is_off(value))
    return {};
  return {Effect::Unknown, {}};
}

}  // namespace temper::actors
