#include "sim_hw/memory/activations.hpp"

#include "sim_hw/model/numbers.hpp"

#include <algorithm>
#include <initializer_list>

namespace temper::sim_hw {

namespace {

SavedTensor elementwise(std::string_view name, double width, TensorSplit cut, double reads = 1) {
  return {name, width, 2, cut, TensorPart::Kept, RecomputeOperator::Elementwise, reads};
}

SavedTensor projection(std::string_view name, double width, TensorSplit cut, double inner) {
  const RecomputeOperator recompute_operator =
      cut == TensorSplit::Routed || cut == TensorSplit::Expert ? RecomputeOperator::Experts
                                                               : RecomputeOperator::Projection;
  return {name, width, 2, cut, TensorPart::Kept, recompute_operator, inner};
}

/// Whether the weights of a layer with one of these names, or their adapters, have gradients, which
/// need the layer's input.
bool has_gradient(const TrainShape& shape, std::initializer_list<AdapterTarget> targets) {
  return !shape.adapter || std::ranges::any_of(targets, [&](AdapterTarget target) {
    return shape.adapter->has(target);
  });
}

void add_latent_projections(SavedTensors& saved, const ModelSpec& model, const TrainShape& shape) {
  const double hidden = as_double(model.hidden);
  const double query = as_double(model.heads * model.head_dim);
  const double value = as_double(model.heads * model.value_dim());
  const double query_latent = as_double(model.latent->q_lora_rank);
  const double latent = as_double(model.latent->kv_lora_rank);
  saved.add(
      projection("query latent before its norm", query_latent, TensorSplit::Sequence, hidden));
  if (has_gradient(shape, {AdapterTarget::QueryUp}))
    saved.add(elementwise("query latent", query_latent, TensorSplit::Sequence));
  saved.add(projection("key-value latent before its norm", latent, TensorSplit::Sequence, hidden));
  if (has_gradient(shape, {AdapterTarget::KeyValueUp}))
    saved.add(elementwise("key-value latent", latent, TensorSplit::Sequence));
  saved.add(projection("queries", query, TensorSplit::Tensor, query_latent));
  saved.add(projection("keys",
                       query,
                       TensorSplit::Tensor,
                       latent));  // Of every head, because training expands them.
  saved.add(projection("values", value, TensorSplit::Tensor, latent));
}

void add_attention(SavedTensors& saved, const ModelSpec& model, const TrainShape& shape) {
  const double hidden = as_double(model.hidden);
  const double query = as_double(model.heads * model.head_dim);
  const double value = as_double(model.heads * model.value_dim());
  saved.add({"attention norm input", hidden, 2, TensorSplit::Sequence});
  using T = AdapterTarget;
  if (has_gradient(shape, {T::Query, T::Key, T::Value, T::QueryDown, T::KeyValueDown})) {
    saved.add(elementwise(
        "attention norm output, input of the projections", hidden, TensorSplit::Sequence));
  }
  if (model.latent) {
    add_latent_projections(saved, model, shape);
  } else {
    const double key = as_double(model.kv_heads * model.head_dim);
    const double values = as_double(model.kv_heads * model.value_dim());
    if (model.qk_norm) {
      saved.add(projection(
          "queries and keys before their norm", query + key, TensorSplit::Tensor, hidden));
      saved.add(elementwise("queries", query, TensorSplit::Tensor));
      saved.add(elementwise("keys", key, TensorSplit::Tensor));
    } else {
      saved.add(projection("queries", query, TensorSplit::Tensor, hidden));
      saved.add(projection("keys", key, TensorSplit::Tensor, hidden));
    }
    saved.add(projection("values", values, TensorSplit::Tensor, hidden));
  }
  if (shape.attention == AttentionKernel::Fused) {
    saved.add({"logsumexp", as_double(model.heads), 4});
  } else {
    const double scores = as_double(model.heads) * as_double(shape.seq);
    saved.add({"softmax output", scores, 2, TensorSplit::Tensor, TensorPart::AttentionCore});
    if (shape.dropout > 0) {
      saved.add(
          {"softmax dropout mask", scores, 1, TensorSplit::Tensor, TensorPart::AttentionCore});
      saved.add(
          {"softmax dropout output", scores, 2, TensorSplit::Tensor, TensorPart::AttentionCore});
    }
  }
  saved.add({"attention output, input of its projection",
             value,
             2,
             TensorSplit::Tensor,
             TensorPart::Kept,
             RecomputeOperator::Attention,
             0});
  if (shape.dropout > 0)
    saved.add({"attention dropout mask", hidden, 1, TensorSplit::Sequence});
  if (model.sandwich_norm)
    saved.add(projection("norm after attention, input", hidden, TensorSplit::Sequence, value));
}

/// How an MLP is computed, and whether its down projection needs its input.
struct Inner {
  Gating gating = Gating::Fused;
  bool down = true;
};

/// Tensors of an MLP of intermediate size `ffn`, after its norm.
void add_inner(
    SavedTensors& saved, const ModelSpec& model, double ffn, TensorSplit cut, Inner inner) {
  const double hidden = as_double(model.hidden);
  if (model.activation == Activation::Gelu) {
    saved.add(projection("GELU input", ffn, cut, hidden));
    if (inner.down)
      saved.add(elementwise("GELU output, input of the down projection", ffn, cut));
    return;
  }
  saved.add(projection("gate", ffn, cut, hidden));
  saved.add(projection("up", ffn, cut, hidden));
  if (inner.gating == Gating::Eager)
    saved.add(elementwise("silu(gate)", ffn, cut));
  if (inner.down)
    saved.add(elementwise("silu(gate) * up, input of the down projection", ffn, cut, 2));
}

/// The columns between A and B of the adapters of a layer.
void add_adapter(SavedTensors& saved, const ModelSpec& model, const Adapter& adapter, bool dense) {
  const AdapterShapes shapes = adapter_shapes(model, adapter);
  const LowRankLayers& mlp = dense ? shapes.dense : shapes.shared;
  const auto add = [&](std::string_view name, std::size_t layers, double copies, TensorSplit cut) {
    if (layers > 0)
      saved.add({name, copies * shapes.rank * static_cast<double>(layers), 2, cut});
  };
  add("adapters", shapes.attention.all().size() + mlp.all().size(), 1, TensorSplit::Whole);
  if (!dense) {
    add("adapters of experts",
        shapes.expert.all().size(),
        as_double(model.moe->top_k),
        TensorSplit::Routed);
  }
}

}  // namespace

SavedTensors saved_tensors(const ModelSpec& model,
                           const TrainShape& shape,
                           LayerKind kind,
                           Gating gating) {
  SavedTensors saved;
  const double hidden = as_double(model.hidden);
  add_attention(saved, model, shape);
  saved.add({"MLP norm input", hidden, 2, TensorSplit::Sequence});
  const bool dense = kind == LayerKind::Dense || !model.moe;
  const bool wide = has_gradient(shape, {AdapterTarget::Gate, AdapterTarget::Up});
  const Inner inner{gating, has_gradient(shape, {AdapterTarget::Down})};
  if (!shape.adapter || (wide && (dense || model.moe->shared_experts > 0))) {
    saved.add(
        elementwise("MLP norm output, input of its projection", hidden, TensorSplit::Sequence));
  }
  if (dense) {
    add_inner(saved, model, as_double(model.ffn), TensorSplit::Tensor, inner);
  } else {
    const MixtureOfExperts& moe = *model.moe;
    const double copies = as_double(moe.top_k);
    saved.add({"router probabilities", as_double(moe.experts), 4, TensorSplit::Sequence});
    if (wide)
      saved.add({"tokens sorted by expert", copies * hidden, 2, TensorSplit::Routed});
    add_inner(saved, model, copies * as_double(moe.expert_ffn), TensorSplit::Expert, inner);
    saved.add(projection("expert outputs, for the gradient of their weights",
                         copies * hidden,
                         TensorSplit::Routed,
                         as_double(moe.expert_ffn)));
    if (moe.shared_experts > 0) {
      add_inner(saved,
                model,
                as_double(moe.shared_experts * moe.shared_expert_ffn),
                TensorSplit::Tensor,
                inner);
    }
  }
  if (shape.dropout > 0)
    saved.add({"MLP dropout mask", hidden, 1, TensorSplit::Sequence});
  if (model.sandwich_norm)
    saved.add({"norm after the MLP, input", hidden, 2, TensorSplit::Sequence});
  if (shape.adapter)
    add_adapter(saved, model, *shape.adapter, dense);
  return saved;
}

double tensor_bytes_per_token(const SavedTensor& tensor,
                              const Layout& layout,
                              const TrainShape& shape) {
  const double tp = as_double(layout.tp);
  double cut = 1;
  switch (tensor.cut) {
    case TensorSplit::Sequence:
      cut = layout.sequence_parallel == SequenceParallel::On ? tp : 1;
      break;
    case TensorSplit::Tensor:
      cut = tp;
      break;
    case TensorSplit::Routed:  // Each device routes 1/tp of the tokens and gathers those of
                               // expert_tp.
      cut = tp / (as_double(layout.expert_tp) * shape.expert_imbalance);
      break;
    case TensorSplit::Expert:
      cut = tp / shape.expert_imbalance;
      break;
    case TensorSplit::Whole:
      break;
  }
  return tensor.width * tensor.bytes / cut;
}

double SavedTensors::bytes_per_token(const Layout& layout,
                                     const TrainShape& shape,
                                     Recompute recompute,
                                     std::uint32_t dropped) const {
  double sum = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const SavedTensor& tensor = tensors_[i];
    if ((dropped >> i & 1) != 0)
      continue;
    if (recompute == Recompute::Selective && tensor.part == TensorPart::AttentionCore)
      continue;
    sum += tensor_bytes_per_token(tensor, layout, shape);
  }
  return sum;
}

}  // namespace temper::sim_hw
