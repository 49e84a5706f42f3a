#include "sim_hw/model/parameters.hpp"

namespace temper::sim_hw {
namespace {

std::int64_t mlp_matrices(const ModelSpec& model, std::int64_t intermediate) {
  const std::int64_t count = model.activation == Activation::SwiGlu ? 3 : 2;
  return count * model.hidden * intermediate;
}

/// Bias parameters of one layer's projections.
std::int64_t layer_biases(const ModelSpec& model) {
  const std::int64_t qkv =
      model.heads * model.head_dim + model.kv_heads * (model.head_dim + model.value_dim());
  if (!model.linear_bias)
    return model.qkv_bias ? qkv : 0;
  const std::int64_t up = (model.activation == Activation::SwiGlu ? 2 : 1) * model.ffn;
  return qkv + model.hidden + up + model.hidden;
}

/// Parameters of one norm over the residual stream.
std::int64_t norm_size(const ModelSpec& model) {
  return (model.layer_norm ? 2 : 1) * model.hidden;
}

std::int64_t layer_norms(const ModelSpec& model) {
  std::int64_t norms = (model.sandwich_norm ? 4 : 2) * norm_size(model);
  if (model.qk_norm)
    norms += 2 * model.head_dim;
  if (model.latent)
    norms += model.latent->q_lora_rank + model.latent->kv_lora_rank;
  return norms;
}

std::int64_t mtp_parameters(const ModelSpec& model, std::int64_t experts) {
  std::int64_t module = attention_parameters(model) + layer_biases(model) + layer_norms(model);
  if (model.moe) {
    module += model.hidden * model.moe->experts + experts * expert_parameters(model) +
              shared_expert_parameters(model);
  } else {
    module += dense_mlp_parameters(model);
  }
  module += 2 * model.hidden * model.hidden + 3 * norm_size(model);
  return model.mtp_layers * module;
}

/// Counts `experts` of the routed experts of each layer.
ParameterCount count(const ModelSpec& model, std::int64_t experts) {
  ParameterCount out;
  out.embedding = (model.vocabulary + model.learned_positions) * model.hidden;
  out.head = model.tie_embeddings ? 0 : model.vocabulary * model.hidden;
  out.attention = model.layers * attention_parameters(model);
  out.dense_mlp = model.dense_layers() * dense_mlp_parameters(model);
  if (model.moe) {
    out.router = model.moe_layers() * model.hidden * model.moe->experts;
    out.routed_experts = model.moe_layers() * experts * expert_parameters(model);
    out.shared_experts = model.moe_layers() * shared_expert_parameters(model);
  }
  out.biases = model.layers * layer_biases(model);
  out.norms = model.layers * layer_norms(model) + norm_size(model);
  out.mtp = mtp_parameters(model, experts);
  return out;
}

}  // namespace

std::int64_t attention_parameters(const ModelSpec& model) {
  const std::int64_t out = model.heads * model.value_dim() * model.hidden;
  if (!model.latent) {
    return model.hidden * model.heads * model.head_dim +
           model.hidden * model.kv_heads * (model.head_dim + model.value_dim()) + out;
  }
  const LatentAttention& latent = *model.latent;
  const std::int64_t head = latent.qk_nope_dim + latent.qk_rope_dim;
  return model.hidden * latent.q_lora_rank + latent.q_lora_rank * model.heads * head +
         model.hidden * (latent.kv_lora_rank + latent.qk_rope_dim) +
         latent.kv_lora_rank * model.heads * (latent.qk_nope_dim + model.value_dim()) + out;
}

std::int64_t dense_mlp_parameters(const ModelSpec& model) {
  return mlp_matrices(model, model.ffn);
}

std::int64_t expert_parameters(const ModelSpec& model) {
  return mlp_matrices(model, model.moe->expert_ffn);
}

std::int64_t shared_expert_parameters(const ModelSpec& model) {
  return model.moe->shared_experts * mlp_matrices(model, model.moe->shared_expert_ffn);
}

ParameterCount count_parameters(const ModelSpec& model) {
  return count(model, model.moe ? model.moe->experts : 0);
}

ParameterCount count_active_parameters(const ModelSpec& model) {
  return count(model, model.moe ? model.moe->top_k : 0);
}

}  // namespace temper::sim_hw
