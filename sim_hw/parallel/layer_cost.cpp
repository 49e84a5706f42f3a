#include "sim_hw/parallel/layer_cost.hpp"

#include "sim_hw/model/numbers.hpp"
#include "sim_hw/operators/operators.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/host_dispatch.hpp"
#include "sim_hw/steps/adapter_products.hpp"

#include <algorithm>

namespace temper::sim_hw {

namespace {

/// Forward pass, both gradients, and the weight gradient alone, which communication may overlap.
/// Weights beside an adapter are frozen, without a gradient.
struct Matmul : ProductSeconds {
  void add(const StepInputs& in, double m, double n, double k) {
    const Device& device = in.device;
    forward += gemm_seconds(device, Heat::Sustained, m, n, k);
    if (in.shape.adapter) {
      backward += device.k.matmul_backward * gemm_seconds(device, Heat::Sustained, m, k, n);
      return;
    }
    backward += gemm_backward_seconds(device, Heat::Sustained, m, n, k);
    weight_gradient += device.k.matmul_backward * gemm_seconds(device, Heat::Sustained, n, k, m);
  }
  void add_adapters(const StepInputs& in, const LowRankLayers& layers) {
    *this += low_rank_seconds(in.device,
                              as_double(in.shape.adapter->rank),
                              layers,
                              in.tokens(),
                              in.tokens() / in.sequence_cut());
  }
};

AdapterShapes adapters_of(const StepInputs& in) {
  return adapter_shapes(
      in.model, *in.shape.adapter, {in.tp(), in.tp(), as_double(in.layout.expert_tp)});
}

struct PassSeconds {
  double forward = 0;
  double backward = 0;

  double total() const { return forward + backward; }
};

Matmul projections(const StepInputs& in) {
  const ModelSpec& model = in.model;
  const double m = in.tokens();
  const double heads = as_double(model.heads) / in.tp();
  const double key = as_double(model.head_dim);
  const double value = as_double(model.value_dim());
  Matmul sum;
  if (model.latent) {
    const double query_rank = as_double(model.latent->q_lora_rank);
    const double rank = as_double(model.latent->kv_lora_rank);
    const double rope = as_double(model.latent->qk_rope_dim);
    const double nope = as_double(model.latent->qk_nope_dim);
    const double rows = m / in.sequence_cut();  // Columns do not split the down projections.
    sum.add(in, rows, query_rank, in.hidden());
    sum.add(in, m, heads * key, query_rank);
    sum.add(in, rows, rank + rope, in.hidden());
    sum.add(in, m, heads * (nope + value), rank);
  } else {
    const double kv_heads = std::max(1.0, as_double(model.kv_heads) / in.tp());
    sum.add(in, m, heads * key + kv_heads * (key + value), in.hidden());
  }
  sum.add(in, m, in.hidden(), heads * value);
  if (in.shape.adapter)
    sum.add_adapters(in, adapters_of(in).attention);
  return sum;
}

Matmul mlp(const StepInputs& in, LayerKind kind) {
  const double ffn = cut_ffn(in.model, kind);
  const double inner = in.model.activation == Activation::SwiGlu ? 2 : 1;
  Matmul sum;
  sum.add(in, in.tokens(), inner * ffn / in.tp(), in.hidden());
  sum.add(in, in.tokens(), in.hidden(), ffn / in.tp());
  if (in.shape.adapter) {
    const AdapterShapes adapters = adapters_of(in);
    sum.add_adapters(in, kind == LayerKind::Dense ? adapters.dense : adapters.shared);
  }
  return sum;
}

/// Bytes moved per score of unfused attention. Forward: the product writes 2, the scaled masked
/// softmax reads 2 and writes 2, the second product reads 2; dropout reads 2, writes 2 and a mask.
/// Backward: the second product reads 2 and writes 2, softmax reads 4 and writes 2, the first
/// product reads 2 for each of its gradients; dropout reads 2 and the mask and writes 2.
PassSeconds score_bytes(double dropout) {
  const double extra = dropout > 0 ? 5 : 0;
  return {8 + extra, 14 + extra};
}

PassSeconds attention(const StepInputs& in) {
  const double cp = as_double(in.layout.cp);
  const double batch = as_double(in.shape.micro_batch);
  const double seq = as_double(in.shape.seq);
  const AttentionShape a = attention_shape(in);
  if (in.shape.attention == AttentionKernel::Fused) {
    return {attention_prefill_seconds(in.device, a, batch, seq) / cp,
            attention_backward_seconds(in.device, a, batch, seq) / cp};
  }
  const double scores = batch * a.heads * seq * seq / cp;  // The whole square.
  const double products = scores * 2 * (a.key_dim + a.value_dim) * in.device.sustained_cost;
  const PassSeconds bytes = score_bytes(in.shape.dropout);
  const double kernels = in.shape.dropout > 0 ? 4 : 3;
  return {products + elementwise_seconds(in.device, kernels, scores * bytes.forward),
          2 * products + elementwise_seconds(in.device, kernels + 2, scores * bytes.backward)};
}

/// Norms read 2 and write 2 bytes per element; backward they read 4, write 2 and add 6 for the
/// residual's gradient. The residual reads 4 and writes 2. Dropout in the same kernel writes a mask
/// of 1; backward it reads 3 and writes 2. Rotary embedding reads and writes queries and keys in
/// both passes. GELU reads 2 and writes 2; backward it reads 4 and writes 2. SwiGLU reads 4 and
/// writes 2; backward 6 and 4.
PassSeconds elementwise(const StepInputs& in, double ffn) {
  const ModelSpec& model = in.model;
  const double rows = in.tokens() / in.sequence_cut();
  const double norms = model.sandwich_norm ? 4 : 2;
  const bool dropout = in.shape.dropout > 0;
  double forward = rows * in.hidden() * (norms * 4 + 2 * (dropout ? 7 : 6));
  double backward = rows * in.hidden() * (norms * 6 + 2 * 6 + 2 * (dropout ? 5 : 0));
  double kernels = norms + 3;
  if (model.learned_positions == 0) {
    const double rotary = model.latent ? as_double(model.heads * model.latent->qk_rope_dim)
                                       : as_double((model.heads + model.kv_heads) * model.head_dim);
    const double bytes = in.tokens() * rotary / in.tp() * 4 * (model.qk_norm ? 2 : 1);
    forward += bytes;
    backward += bytes * (model.qk_norm ? 1.5 : 1);
    kernels += 2;
  }
  const bool gelu = model.activation == Activation::Gelu;
  forward += in.tokens() * ffn / in.tp() * (gelu ? 4 : 6);
  backward += in.tokens() * ffn / in.tp() * (gelu ? 6 : 10);
  return {elementwise_seconds(in.device, kernels, forward),
          elementwise_seconds(in.device, 1.5 * kernels, backward)};
}

/// Token copies that the busiest expert device computes.
double routed_copies(const StepInputs& in) {
  return in.tokens() * as_double(in.layout.expert_tp) / in.tp() * as_double(in.model.moe->top_k) *
         in.shape.expert_imbalance;
}

ProductSeconds routed_experts(const StepInputs& in) {
  const MixtureOfExperts& moe = *in.model.moe;
  const double local = as_double(moe.experts) / as_double(in.layout.ep);
  const double copies = routed_copies(in);
  Matmul router;
  router.add(in, in.tokens() / in.sequence_cut(), as_double(moe.experts), in.hidden());
  const Routing routing{local, copies / 128 + local / 2};
  const ExpertShape expert{in.hidden(), as_double(moe.expert_ffn) / as_double(in.layout.expert_tp)};
  const double grouped = grouped_seconds(in.device, expert, routing, copies);
  if (!in.shape.adapter) {
    const double backward = router.backward + 2 * grouped;
    return {router.forward + grouped, backward, backward / 2};
  }
  ProductSeconds out{router.forward + grouped, router.backward + grouped, 0};
  return out += grouped_low_rank_seconds(in.device, adapters_of(in), routing, copies);
}

double excess(double communication, double compute) {
  return std::max(0.0, communication - compute);
}

/// GEMMs of the attention block and the MLP, each with a region split by tensor parallelism.
PassSeconds tensor_wait(const StepInputs& in,
                        double weight_gradients,
                        double input_gradients,
                        const TensorExchange& e) {
  if (in.layout.tp == 1)
    return {};
  if (in.layout.sequence_parallel == SequenceParallel::Off) {
    const double reduce = e.regions * all_reduce_seconds(in.fabric, e.group, e.bytes);
    return {reduce, excess(reduce, weight_gradients)};
  }
  const double gather = e.regions * all_gather_seconds(in.fabric, e.group, e.bytes);
  const double scatter = e.regions * reduce_scatter_seconds(in.fabric, e.group, e.bytes);
  return {gather + scatter,
          gather + excess(gather, input_gradients) + excess(scatter, weight_gradients)};
}

PassSeconds expert_wait(const StepInputs& in) {
  const ExpertExchange e = expert_exchange(in);
  double once = e.seconds;
  if (in.layout.expert_tp > 1) {
    once += all_gather_seconds(in.fabric, e.tensor, e.tensor_bytes) +
            reduce_scatter_seconds(in.fabric, e.tensor, e.tensor_bytes);
  }
  return {once, once};
}

/// Ring exchange of keys and values (forward), and of them with their gradients (backward).
PassSeconds context_wait(const StepInputs& in, const PassSeconds& attention) {
  const std::int64_t cp = in.layout.cp;
  if (cp == 1)
    return {};
  const double block = p2p_seconds(in.fabric, in.layout.tp, context_block_bytes(in));
  const double steps = as_double(cp - 1);
  return {steps * excess(block, attention.forward / as_double(cp)),
          steps * excess(2 * block, attention.backward / as_double(cp))};
}

/// Compute of a layer, with the exposed part of its tensor and context parallelism.
struct LayerParts {
  Matmul matmul;
  PassSeconds mlp;  ///< Part of `matmul`: of a dense layer, or the shared experts.
  PassSeconds core, vector, tensor, context;
  ProductSeconds routed;  ///< With the router.

  double forward() const { return matmul.forward + core.forward + vector.forward + routed.forward; }
  double backward() const {
    return matmul.backward + core.backward + vector.backward + routed.backward;
  }
};

LayerParts layer_parts(const StepInputs& in, LayerKind kind) {
  LayerParts parts;
  parts.matmul = projections(in);
  const double ffn = cut_ffn(in.model, kind);
  if (ffn > 0) {
    const Matmul dense = mlp(in, kind);
    parts.mlp = {dense.forward, dense.backward};
    parts.matmul += dense;
  }
  parts.core = attention(in);
  parts.vector = elementwise(in, ffn);
  if (kind == LayerKind::Experts)
    parts.routed = routed_experts(in);
  parts.tensor = tensor_wait(in,
                             parts.matmul.weight_gradient,
                             parts.matmul.backward - parts.matmul.weight_gradient,
                             tensor_exchange(in, tensor_regions(in.model, kind)));
  parts.context = context_wait(in, parts.core);
  return parts;
}

/// Exposed part of dispatch and combine.
struct ExpertExposure {
  PassSeconds pass;
  double recompute = 0;
  PassSeconds hidden;  ///< By the schedule.
};

ExpertExposure expert_show(const StepInputs& in, const LayerParts& parts) {
  const bool full = in.shape.recompute == Recompute::Full;
  const PassSeconds raw = expert_wait(in);
  ExpertExposure show;
  show.pass = raw;
  if (in.shape.mechanisms.schedule != PipelineSchedule::OneForwardOneBackward) {
    // Each overlaps the compute of the other direction, which includes recomputation.
    const double back = raw.backward + (full ? raw.forward : 0);
    show.pass.forward = excess(raw.forward, parts.backward() + (full ? parts.forward() : 0));
    show.pass.backward = excess(back, parts.forward());
    show.hidden = {raw.forward - show.pass.forward, back - show.pass.backward};
    return show;
  }
  if (in.shape.expert_overlap == ExpertOverlap::On) {
    show.pass.forward = excess(raw.forward, parts.backward());
    show.pass.backward = excess(raw.backward, parts.forward());
  }
  show.recompute = full ? show.pass.forward : 0;
  return show;
}

void add_recompute(const StepInputs& in, const LayerParts& parts, LayerKind kind, StageTime& time) {
  if (in.shape.recompute == Recompute::Full) {
    time.recompute = parts.forward();
    time.tensor_parallel += parts.tensor.forward;
    time.context_parallel += parts.context.forward;
    return;
  }
  if (in.shape.recompute == Recompute::Selective &&
      in.shape.attention == AttentionKernel::Unfused) {
    time.recompute = parts.core.forward;  // Fused attention recomputes inside its backward kernel.
  }
  const ActivationPlan& plan = in.shape.activations;
  const TensorFates& fates = kind == LayerKind::Experts ? plan.experts : plan.dense;
  if (fates.recomputed != 0)
    time.recompute += recompute_seconds(in, kind, fates.recomputed);
  if (fates.swapped != 0) {
    const double bytes = saved_bytes(in, kind, fates.swapped);
    time.swap = excess(bytes * in.fabric.from_device, parts.forward()) +
                excess(bytes * in.fabric.to_device, parts.backward());
  }
}

/// The kernels of a layer as the host launches them, with communication as far as it is exposed.
DispatchedLayer dispatched(const StepInputs& in,
                           const LayerParts& parts,
                           const ExpertExposure& show,
                           LayerKind kind,
                           const LayerCost& cost) {
  DispatchedLayer layer;
  layer.experts = kind == LayerKind::Experts;
  const PassSeconds shared = layer.experts ? parts.mlp : PassSeconds{};
  PassKernels& forward = layer.forward;
  forward = {.vector = parts.vector.forward,
             .projections = parts.matmul.forward - shared.forward,
             .attention = parts.core.forward,
             .shared = shared.forward,
             .routed = parts.routed.forward,
             .exchange = show.pass.forward};
  forward.other = cost.forward - forward.total();
  if (in.shape.recompute == Recompute::Full) {
    layer.recompute = forward;
    layer.recompute.exchange = show.recompute;
    layer.recompute.other = parts.tensor.forward + parts.context.forward;
  }
  PassKernels& backward = layer.backward;
  backward = {.vector = parts.vector.backward,
              .projections = parts.matmul.backward - shared.backward,
              .attention = parts.core.backward,
              .shared = shared.backward,
              .routed = parts.routed.backward,
              .exchange = show.pass.backward};
  backward.other = cost.time.total() - cost.forward - layer.recompute.total() - backward.total();
  return layer;
}

}  // namespace

AttentionShape attention_shape(const StepInputs& in) {
  AttentionShape a;
  a.heads = as_double(in.model.heads) / in.tp();
  a.kv_heads = in.model.latent ? a.heads : std::max(1.0, as_double(in.model.kv_heads) / in.tp());
  a.key_dim = as_double(in.model.head_dim);
  a.value_dim = as_double(in.model.value_dim());
  return a;
}

StageTime& StageTime::add(const StageTime& other, double times) {
  matmul += times * other.matmul;
  attention += times * other.attention;
  experts += times * other.experts;
  elementwise += times * other.elementwise;
  accumulation += times * other.accumulation;
  head += times * other.head;
  recompute += times * other.recompute;
  tensor_parallel += times * other.tensor_parallel;
  expert_parallel += times * other.expert_parallel;
  context_parallel += times * other.context_parallel;
  pipeline_transfer += times * other.pipeline_transfer;
  data_wait += times * other.data_wait;
  swap += times * other.swap;
  host += times * other.host;
  return *this;
}

LayerCost& LayerCost::add(const LayerCost& other, double times) {
  time.add(other.time, times);
  forward += times * other.forward;
  hidden += times * other.hidden;
  hidden_forward += times * other.hidden_forward;
  weight_gradient += times * other.weight_gradient;
  return *this;
}

LayerCost layer_cost(const StepInputs& in, LayerKind kind) {
  const LayerParts parts = layer_parts(in, kind);
  LayerCost cost;
  StageTime& time = cost.time;
  time.matmul = parts.matmul.forward + parts.matmul.backward;
  time.attention = parts.core.total();
  time.elementwise = parts.vector.total();
  time.experts = parts.routed.forward + parts.routed.backward;
  time.tensor_parallel = parts.tensor.total();
  time.context_parallel = parts.context.total();
  cost.weight_gradient = parts.matmul.weight_gradient + parts.routed.weight_gradient;
  add_recompute(in, parts, kind, time);
  const double again = in.shape.recompute == Recompute::Full ? 1 : 0;
  time.data_wait =
      (in.shape.attention_imbalance - 1) * (parts.core.total() + again * parts.core.forward);
  ExpertExposure show;
  double summed = 0;
  if (kind == LayerKind::Experts) {
    show = expert_show(in, parts);
    const LoadSum loads = load_sum(in);
    summed = all_reduce_seconds(in.fabric, loads.group, loads.bytes);
    time.expert_parallel = show.pass.total() + show.recompute + summed;
    cost.hidden = show.hidden.total();
    cost.hidden_forward = show.hidden.forward;
  }
  cost.forward =
      parts.forward() + parts.tensor.forward + show.pass.forward + summed + parts.context.forward;
  const HostTimes host{
      in.device.k.host_train_kernel, in.fabric.host_latency, in.device.k.kernel_latency};
  const Mechanisms& m = in.shape.mechanisms;
  if (m.host_dispatch != HostDispatch::Ahead || m.split_counts != SplitCounts::Known) {
    time.host =
        host_wait(dispatched(in, parts, show, kind, cost), host, m.host_dispatch, m.split_counts);
  }
  return cost;
}

}  // namespace temper::sim_hw
