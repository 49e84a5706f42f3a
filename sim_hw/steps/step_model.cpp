#include "sim_hw/steps/step_model.hpp"

#include "sim_hw/model/parameters.hpp"

#include <algorithm>

namespace temper::sim_hw {

StepModel make_step_model(const ModelSpec& model,
                          double tp,
                          double ep,
                          const std::optional<Adapter>& adapter,
                          std::int64_t redundant_experts) {
  StepModel s;
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  s.layers = d(model.layers);
  s.dense_layers = d(model.dense_layers());
  s.moe_layers = d(model.moe_layers());
  s.hidden = d(model.hidden);
  s.attention = {d(model.heads) / tp,
                 std::max(1.0, d(model.kv_heads) / tp),
                 d(model.head_dim),
                 d(model.value_dim())};
  if (model.latent) {
    s.latent = true;
    s.q_rank = d(model.latent->q_lora_rank);
    s.kv_rank = d(model.latent->kv_lora_rank);
    s.rope = d(model.latent->qk_rope_dim);
    s.nope = d(model.latent->qk_nope_dim);
  }
  s.qk_norm = model.qk_norm;
  s.mlp_matrices = model.activation == Activation::SwiGlu ? 3 : 2;
  s.ffn = d(model.ffn) / tp;
  s.vocabulary = d(model.vocabulary) / tp;
  if (model.moe) {
    s.all_experts = d(model.moe->experts);
    s.expert_slots = s.all_experts + d(redundant_experts);
    s.experts = s.expert_slots / ep;
    s.top_k = d(model.moe->top_k);
    s.expert_ffn = d(model.moe->expert_ffn);
    s.shared_ffn = d(model.moe->shared_experts) * d(model.moe->shared_expert_ffn);
  }
  if (model.sparse) {
    s.sparse_tokens = d(model.sparse->top_tokens);
    s.index_heads = d(model.sparse->index_heads);
    s.index_dim = d(model.sparse->index_dim);
  }
  s.tp = tp;
  s.ep = ep;
  s.parameters = d(count_parameters(model).total());
  if (adapter)
    s.adapter = adapter_shapes(model, *adapter, {.tp = tp});
  return s;
}

}  // namespace temper::sim_hw
