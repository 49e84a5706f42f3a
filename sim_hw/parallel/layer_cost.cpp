#include "sim_hw/parallel/layer_cost.hpp"

#include "sim_hw/numbers.hpp"
#include "sim_hw/operators/operators.hpp"

#include <algorithm>

namespace temper::sim_hw {

namespace {

/// Forward, both gradients, and the weight gradient alone, beside which communication runs.
struct Matmul {
  double forward = 0;
  double backward = 0;
  double weight_gradient = 0;

  void add(const Device& device, double m, double n, double k) {
    forward += gemm_seconds(device, Heat::Sustained, m, n, k);
    backward += gemm_backward_seconds(device, Heat::Sustained, m, n, k);
    weight_gradient += device.k.matmul_backward * gemm_seconds(device, Heat::Sustained, n, k, m);
  }
};

struct Pass {
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
    const double rows = m / in.sequence_cut();  // The down projections are not cut by columns.
    sum.add(in.device, rows, query_rank, in.hidden());
    sum.add(in.device, m, heads * key, query_rank);
    sum.add(in.device, rows, rank + rope, in.hidden());
    sum.add(in.device, m, heads * (nope + value), rank);
  } else {
    const double kv_heads = std::max(1.0, as_double(model.kv_heads) / in.tp());
    sum.add(in.device, m, heads * key + kv_heads * (key + value), in.hidden());
  }
  sum.add(in.device, m, in.hidden(), heads * value);
  return sum;
}

Matmul mlp(const StepInputs& in, double ffn) {
  const double inner = in.model.activation == Activation::SwiGlu ? 2 : 1;
  Matmul sum;
  sum.add(in.device, in.tokens(), inner * ffn / in.tp(), in.hidden());
  sum.add(in.device, in.tokens(), in.hidden(), ffn / in.tp());
  return sum;
}

/// Bytes moved per score of unfused attention. Forward: the product writes 2, the scaled masked
/// softmax reads 2 and writes 2, the second product reads 2; dropout reads 2, writes 2 and a mask.
/// Backward: the second product reads 2 and writes 2, softmax reads 4 and writes 2, the first
/// product reads 2 for each of its gradients; dropout reads 2 and the mask and writes 2.
Pass score_bytes(double dropout) {
  const double extra = dropout > 0 ? 5 : 0;
  return {8 + extra, 14 + extra};
}

Pass attention(const StepInputs& in) {
  const ModelSpec& model = in.model;
  const double cp = as_double(in.layout.cp);
  const double batch = as_double(in.shape.micro_batch);
  const double seq = as_double(in.shape.seq);
  AttentionShape a;
  a.heads = as_double(model.heads) / in.tp();
  a.kv_heads = model.latent ? a.heads : std::max(1.0, as_double(model.kv_heads) / in.tp());
  a.key_dim = as_double(model.head_dim);
  a.value_dim = as_double(model.value_dim());
  if (in.shape.attention == AttentionKernel::Fused) {
    return {attention_prefill_seconds(in.device, a, batch, seq) / cp,
            attention_backward_seconds(in.device, a, batch, seq) / cp};
  }
  const double scores = batch * a.heads * seq * seq / cp;  // The whole square.
  const double products = scores * 2 * (a.key_dim + a.value_dim) * in.device.sustained_cost;
  const Pass bytes = score_bytes(in.shape.dropout);
  const double kernels = in.shape.dropout > 0 ? 4 : 3;
  return {products + elementwise_seconds(in.device, kernels, scores * bytes.forward),
          2 * products + elementwise_seconds(in.device, kernels + 2, scores * bytes.backward)};
}

/// Norms read 2 and write 2 bytes per element, backwards read 4, write 2 and add 6 for the
/// residual's gradient; the residual reads 4 and writes 2; dropout in the same kernel writes a mask
/// of 1, backwards reads 3 and writes 2. Rotary reads and writes queries and keys both ways. GELU
/// reads 2 and writes 2, backwards reads 4 and writes 2; SwiGLU reads 4 and writes 2, backwards 6
/// and 4.
Pass elementwise(const StepInputs& in, double ffn) {
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

/// Copies of tokens that the busiest expert device computes.
double routed_copies(const StepInputs& in) {
  return in.tokens() * as_double(in.layout.expert_tp) / in.tp() * as_double(in.model.moe->top_k) *
         in.shape.expert_imbalance;
}

Pass routed_experts(const StepInputs& in) {
  const MixtureOfExperts& moe = *in.model.moe;
  const double local = as_double(moe.experts) / as_double(in.layout.ep);
  const double copies = routed_copies(in);
  Matmul router;
  router.add(in.device, in.tokens() / in.sequence_cut(), as_double(moe.experts), in.hidden());
  const Routing routing{local, copies / 128 + local / 2};
  const ExpertShape expert{in.hidden(), as_double(moe.expert_ffn) / as_double(in.layout.expert_tp)};
  const double grouped = grouped_seconds(in.device, expert, routing, copies);
  return {router.forward + grouped, router.backward + 2 * grouped};
}

/// Intermediate size of the MLP that tensor parallelism cuts: the dense one, or the shared experts.
double cut_ffn(const ModelSpec& model, bool experts) {
  return as_double(experts ? model.moe->shared_experts * model.moe->shared_expert_ffn : model.ffn);
}

double excess(double communication, double compute) {
  return std::max(0.0, communication - compute);
}

/// Of the attention block and the MLP, each with a region cut by tensor parallelism.
Pass tensor_wait(const StepInputs& in,
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

Pass expert_wait(const StepInputs& in) {
  const ExpertExchange e = expert_exchange(in);
  double once = e.seconds;
  if (in.layout.expert_tp > 1) {
    once += all_gather_seconds(in.fabric, e.tensor, e.tensor_bytes) +
            reduce_scatter_seconds(in.fabric, e.tensor, e.tensor_bytes);
  }
  return {once, once};
}

/// Rings of keys and values, forward, and of them and their gradients, backward.
Pass context_wait(const StepInputs& in, const Pass& attention) {
  const std::int64_t cp = in.layout.cp;
  if (cp == 1)
    return {};
  const double block = p2p_seconds(in.fabric, in.layout.tp, context_block_bytes(in));
  const double steps = as_double(cp - 1);
  return {steps * excess(block, attention.forward / as_double(cp)),
          steps * excess(2 * block, attention.backward / as_double(cp))};
}

LayerCost layer_cost(const StepInputs& in, bool experts) {
  const MixtureOfExperts* moe = experts ? &*in.model.moe : nullptr;
  Matmul matmul = projections(in);
  const double ffn = cut_ffn(in.model, experts);
  if (ffn > 0) {
    const Matmul dense = mlp(in, ffn);
    matmul.forward += dense.forward;
    matmul.backward += dense.backward;
    matmul.weight_gradient += dense.weight_gradient;
  }
  const Pass core = attention(in);
  const Pass vector = elementwise(in, ffn);
  const Pass routed = moe != nullptr ? routed_experts(in) : Pass{};
  const Pass tensor = tensor_wait(in,
                                  matmul.weight_gradient,
                                  matmul.backward - matmul.weight_gradient,
                                  tensor_exchange(in, tensor_regions(in.model, experts)));
  Pass expert = moe != nullptr ? expert_wait(in) : Pass{};
  const Pass context = context_wait(in, core);

  const double compute = matmul.forward + core.forward + vector.forward + routed.forward;
  if (in.shape.expert_overlap == ExpertOverlap::On) {  // Each beside the other's compute.
    expert.forward =
        excess(expert.forward, matmul.backward + core.backward + vector.backward + routed.backward);
    expert.backward = excess(expert.backward, compute);
  }

  LayerCost cost;
  StageTime& time = cost.time;
  time.matmul = matmul.forward + matmul.backward;
  time.attention = core.total();
  time.elementwise = vector.total();
  time.experts = routed.total();
  time.tensor_parallel = tensor.total();
  time.expert_parallel = expert.total();
  time.context_parallel = context.total();
  cost.forward = compute + tensor.forward + expert.forward + context.forward;
  if (in.shape.recompute == Recompute::Full) {
    time.recompute = compute;
    time.tensor_parallel += tensor.forward;
    time.expert_parallel += expert.forward;
    time.context_parallel += context.forward;
  } else if (in.shape.recompute == Recompute::Selective &&
             in.shape.attention == AttentionKernel::Unfused) {
    time.recompute = core.forward;  // Fused attention does this inside its backward.
  }
  return cost;
}

}  // namespace

TensorExchange tensor_exchange(const StepInputs& in, double regions) {
  const bool parts = in.layout.sequence_parallel == SequenceParallel::On;
  return {{in.layout.tp, 1}, regions, parts ? in.plane_bytes() / in.tp() : in.plane_bytes()};
}

double tensor_regions(const ModelSpec& model, bool experts) {
  return cut_ffn(model, experts) > 0 ? 2 : 1;
}

ExpertExchange expert_exchange(const StepInputs& in) {
  const Layout& layout = in.layout;
  const double rows = in.tokens() / in.tp();
  const double top_k = as_double(in.model.moe->top_k);
  ExpertExchange e;
  e.group = {layout.ep, layout.expert_tp};
  e.traffic = {rows * in.shape.expert_imbalance, top_k, 2 * in.hidden()};
  const auto both = [&](AllToAll how) {
    return moe_dispatch_seconds(in.fabric, e.group, e.traffic, how) +
           moe_combine_seconds(in.fabric, e.group, e.traffic, how);
  };
  if (layout.ep > 1) {
    const double flat = both(AllToAll::Flat);
    const double by_node = both(AllToAll::Hierarchical);
    e.how = by_node < flat ? AllToAll::Hierarchical : AllToAll::Flat;
    e.seconds = std::min(flat, by_node);
  }
  e.tensor = {layout.expert_tp, 1};
  e.tensor_bytes = 2 * rows * top_k * in.hidden();
  return e;
}

double context_block_bytes(const StepInputs& in) {
  const double heads = in.model.latent ? as_double(in.model.heads) / in.tp()
                                       : std::max(1.0, as_double(in.model.kv_heads) / in.tp());
  return 2 * in.tokens() * heads * as_double(in.model.head_dim + in.model.value_dim());
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
  return *this;
}

LayerCost dense_layer_cost(const StepInputs& in) {
  return layer_cost(in, false);
}

LayerCost expert_layer_cost(const StepInputs& in) {
  return layer_cost(in, true);
}

}  // namespace temper::sim_hw
