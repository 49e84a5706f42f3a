#include "sim_hw/memory/activations.hpp"

#include "sim_hw/numbers.hpp"

namespace temper::sim_hw {

namespace {

void add_attention(SavedTensors& saved, const ModelSpec& model, const TrainShape& shape) {
  const double hidden = as_double(model.hidden);
  const double query = as_double(model.heads * model.head_dim);
  const double value = as_double(model.heads * model.value_dim());
  saved.add({"attention norm input", hidden, 2, Cut::Sequence});
  saved.add({"attention norm output, input of the projections", hidden, 2, Cut::Sequence});
  if (model.latent) {
    const double query_latent = as_double(model.latent->q_lora_rank);
    const double latent = as_double(model.latent->kv_lora_rank);
    saved.add({"query latent before its norm", query_latent, 2, Cut::Sequence});
    saved.add({"query latent", query_latent, 2, Cut::Sequence});
    saved.add({"key-value latent before its norm", latent, 2, Cut::Sequence});
    saved.add({"key-value latent", latent, 2, Cut::Sequence});
    saved.add({"queries", query, 2});
    saved.add({"keys", query, 2});  // Expanded to every head for training.
    saved.add({"values", value, 2});
  } else {
    const double key = as_double(model.kv_heads * model.head_dim);
    if (model.qk_norm)
      saved.add({"queries and keys before their norm", query + key, 2});
    saved.add({"queries", query, 2});
    saved.add({"keys", key, 2});
    saved.add({"values", as_double(model.kv_heads * model.value_dim()), 2});
  }
  if (shape.attention == AttentionKernel::Fused) {
    saved.add({"logsumexp", as_double(model.heads), 4});
  } else {
    const double scores = as_double(model.heads) * as_double(shape.seq);
    saved.add({"softmax output", scores, 2, Cut::Tensor, Part::AttentionCore});
    if (shape.dropout > 0) {
      saved.add({"softmax dropout mask", scores, 1, Cut::Tensor, Part::AttentionCore});
      saved.add({"softmax dropout output", scores, 2, Cut::Tensor, Part::AttentionCore});
    }
  }
  saved.add({"attention output, input of its projection", value, 2});
  if (shape.dropout > 0)
    saved.add({"attention dropout mask", hidden, 1, Cut::Sequence});
  if (model.sandwich_norm)
    saved.add({"norm after attention, input", hidden, 2, Cut::Sequence});
}

/// Of an MLP of intermediate size `ffn`, after its norm; `in` and `out` cut as given.
void add_inner(SavedTensors& saved, const ModelSpec& model, double ffn, Cut cut, Gating gating) {
  if (model.activation == Activation::Gelu) {
    saved.add({"GELU input", ffn, 2, cut});
    saved.add({"GELU output, input of the down projection", ffn, 2, cut});
    return;
  }
  saved.add({"gate", ffn, 2, cut});
  saved.add({"up", ffn, 2, cut});
  if (gating == Gating::Eager)
    saved.add({"silu(gate)", ffn, 2, cut});
  saved.add({"silu(gate) * up, input of the down projection", ffn, 2, cut});
}

}  // namespace

SavedTensors saved_tensors(const ModelSpec& model,
                           const TrainShape& shape,
                           LayerKind kind,
                           Gating gating) {
  SavedTensors saved;
  const double hidden = as_double(model.hidden);
  add_attention(saved, model, shape);
  saved.add({"MLP norm input", hidden, 2, Cut::Sequence});
  saved.add({"MLP norm output, input of its projection", hidden, 2, Cut::Sequence});
  if (kind == LayerKind::Dense || !model.moe) {
    add_inner(saved, model, as_double(model.ffn), Cut::Tensor, gating);
  } else {
    const MixtureOfExperts& moe = *model.moe;
    const double copies = as_double(moe.top_k);
    saved.add({"router probabilities", as_double(moe.experts), 4, Cut::Sequence});
    saved.add({"tokens sorted by expert", copies * hidden, 2, Cut::Routed});
    add_inner(saved, model, copies * as_double(moe.expert_ffn), Cut::Expert, gating);
    saved.add(
        {"expert outputs, for the gradient of their weights", copies * hidden, 2, Cut::Routed});
    if (moe.shared_experts > 0) {
      add_inner(
          saved, model, as_double(moe.shared_experts * moe.shared_expert_ffn), Cut::Tensor, gating);
    }
  }
  if (shape.dropout > 0)
    saved.add({"MLP dropout mask", hidden, 1, Cut::Sequence});
  if (model.sandwich_norm)
    saved.add({"norm after the MLP, input", hidden, 2, Cut::Sequence});
  return saved;
}

double SavedTensors::bytes_per_token(const Layout& layout,
                                     const TrainShape& shape,
                                     Recompute recompute) const {
  const double tp = as_double(layout.tp);
  const double expert_tp = as_double(layout.expert_tp);
  const bool sequence = layout.sequence_parallel == SequenceParallel::On;
  double sum = 0;
  for (const SavedTensor& tensor : all()) {
    if (recompute == Recompute::Selective && tensor.part == Part::AttentionCore)
      continue;
    double cut = 1;
    switch (tensor.cut) {
      case Cut::Sequence:
        cut = sequence ? tp : 1;
        break;
      case Cut::Tensor:
        cut = tp;
        break;
      case Cut::Routed:  // Each device routes 1/tp of the tokens and gathers those of expert_tp.
        cut = tp / (expert_tp * shape.expert_imbalance);
        break;
      case Cut::Expert:
        cut = tp / shape.expert_imbalance;
        break;
    }
    sum += tensor.width * tensor.bytes / cut;
  }
  return sum;
}

}  // namespace temper::sim_hw
