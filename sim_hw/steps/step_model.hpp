// The part of a model on one device, as doubles: dimensions after tensor and expert parallelism.
// Computed once per (model, layout); the cost functions only multiply.
#pragma once

#include "sim_hw/model/adapter.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/operators/operators.hpp"

namespace temper::sim_hw {

struct StepModel {
  double layers = 0;
  double dense_layers = 0;
  double moe_layers = 0;
  double hidden = 0;
  AttentionShape attention;  ///< After tensor parallelism.
  bool latent = false;
  double q_rank = 0;   ///< Latent attention: query latent.
  double kv_rank = 0;  ///< Latent attention: cached latent.
  double rope = 0;
  double nope = 0;
  bool qk_norm = false;
  double mlp_matrices = 3;  ///< Matrices before the down projection: two (gated) or one.
  double ffn = 0;           ///< Share of this device.
  double vocabulary = 0;    ///< Share of this device.
  double experts = 0;       ///< Routed experts of this device, with redundant ones.
  double all_experts = 0;   ///< Without redundant ones: what a router chooses from.
  double expert_slots = 0;  ///< With redundant ones.
  double top_k = 0;
  double expert_ffn = 0;
  double shared_ffn = 0;  ///< All shared experts together.
  double tp = 1;
  double ep = 1;
  double sparse_tokens = 0;  ///< Tokens that a query attends when decoding, at most; 0: all.
  double index_heads = 0;
  double index_dim = 0;   ///< Bytes of an index key.
  double parameters = 0;  ///< Whole model, without the adapter.
  std::optional<AdapterShapes> adapter{};

  double qkv_width() const {
    return attention.heads * attention.key_dim +
           attention.kv_heads * (attention.key_dim + attention.value_dim);
  }
};

/// Requires: a valid layout, whose tp divides the heads and ep the experts with redundant ones
/// (sim_hw/parallel/layout_check.hpp).
StepModel make_step_model(const ModelSpec& model,
                          double tp = 1,
                          double ep = 1,
                          const std::optional<Adapter>& adapter = {},
                          std::int64_t redundant_experts = 0);

}  // namespace temper::sim_hw
