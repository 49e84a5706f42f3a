// Parameter counts of a model by part, computed from its dimensions.
//
// Assumptions: one model weight = one parameter, MTP modules apart; a head that is tied to the
// embedding counts once, as embedding; the correction bias of a router (one number per expert) is
// left out.
// Equations, per layer, with h hidden, H/K query and key heads, d/v head sizes, f, e intermediate
// sizes of the MLP and of an expert:
//   attention          h H d + h K (d + v) + H v h
//   latent attention   h q + q H d + h (c + r) + c H (d - r + v) + H v h; q, c: ranks,
//                      r: rotary size
//   MLP                3 h f (SwiGlu) or 2 h f (Gelu); an expert the same with e
//   router             h x experts
//   MTP module         one layer of the last kind, 2 h x h, three norms; shares embedding and head
// Active: top_k of the routed experts, everything else, both embeddings included.
// Sources: no constant is fitted. Tested with the counts of 28 published models
// (tests/sim_hw/model/model_test.cpp).
#pragma once

#include "sim_hw/model/model_spec.hpp"

#include <cstdint>

namespace temper::sim_hw {

/// Parameters of the whole model, summed over its layers.
struct ParameterCount {
  std::int64_t embedding = 0;  ///< Token embedding, and learned positions.
  std::int64_t head = 0;       ///< 0 if tied to the embedding.
  std::int64_t attention = 0;  ///< Projections, without bias and norms.
  std::int64_t dense_mlp = 0;  ///< Layers without experts.
  std::int64_t router = 0;
  std::int64_t routed_experts = 0;
  std::int64_t shared_experts = 0;
  std::int64_t biases = 0;
  std::int64_t norms = 0;
  std::int64_t mtp = 0;  ///< Not in total(), as publishers count.

  /// Matrices of the layers only, as papers on GPT models count.
  std::int64_t matrices() const {
    return attention + dense_mlp + router + routed_experts + shared_experts;
  }
  std::int64_t total() const { return embedding + head + matrices() + biases + norms; }
  std::int64_t with_mtp() const { return total() + mtp; }
  /// Parameters that multiply a token: the input embedding is a look-up unless it is also the head.
  std::int64_t without_lookup() const { return total() - (head > 0 ? embedding : 0); }
};

ParameterCount count_parameters(const ModelSpec& model);
/// Parameters active for one token: `top_k` routed experts and everything else.
ParameterCount count_active_parameters(const ModelSpec& model);

/// Parameters of one layer or one expert; matrices only.
std::int64_t attention_parameters(const ModelSpec& model);
std::int64_t dense_mlp_parameters(const ModelSpec& model);
/// Requires: model.moe.
std::int64_t expert_parameters(const ModelSpec& model);
std::int64_t shared_expert_parameters(const ModelSpec& model);

}  // namespace temper::sim_hw
