// One decode step of an engine that spreads over many devices: tensor parallelism inside a replica,
// data parallelism over replicas, experts over all of them.
//
// Each replica (tp devices) decodes `batch` sequences; every replica has as many. Per layer and
// device:
//   attention of the batch with heads / tp, then an all-reduce over tp (batch x hidden)
//   batch / tp tokens are dispatched to experts over ep devices, experts / ep live on each; from
//   all replicas together batch dp tokens may reach them; combine, then an all-gather over tp
// The cost is the device's operators plus the exposed communication: decode has nothing to hide it
// behind. With one padded graph every operator but attention's core runs at the graph's batch.
//
// Assumed: experts equally loaded; bf16 weights and exchanges; the vocabulary split over tp.
// Equations of operators and collectives: sim_hw/operators/operators.hpp,
// sim_hw/network/collectives.hpp.
#pragma once

#include "sim_hw/network/collectives.hpp"
#include "sim_hw/steps/steps.hpp"

namespace temper::sim_hw {

struct RolloutLayout {
  double tp = 1;
  double dp = 1;
  double ep = 1;
};

struct ReplicaShape {
  double batch = 1;    ///< Sequences of one replica.
  double padded = 1;   ///< Batch that the graph was captured for; `batch` with a graph per shape.
  double context = 1;  ///< Cached tokens of each.
};

/// What the devices of the layout exchange in all layers for `b` tokens of each replica.
template <class Sink>
void visit_rollout_exchanges(
    const Fabric& fabric, const StepModel& m, const RolloutLayout& layout, double b, Sink& sink) {
  const Group tensor{static_cast<std::int64_t>(layout.tp), 1};
  if (layout.tp > 1) {
    const double bytes = 2 * b * m.hidden;
    sink(Op::TensorParallel,
         Pass::Forward,
         m.layers + m.dense_layers,
         all_reduce_seconds(fabric, tensor, bytes),
         {layout.tp, bytes, 0});
  }
  if (m.moe_layers > 0 && layout.ep > 1) {
    const Group experts{static_cast<std::int64_t>(layout.ep), 1};
    const MoeTraffic traffic{b / layout.tp, m.top_k, 2 * m.hidden};
    const double sent = traffic.tokens_per_rank * m.top_k * traffic.bytes_per_token;
    sink(Op::Dispatch,
         Pass::Forward,
         m.moe_layers,
         moe_dispatch_seconds(fabric, experts, traffic),
         {layout.ep, sent, 0});
    sink(Op::Combine,
         Pass::Forward,
         m.moe_layers,
         moe_combine_seconds(fabric, experts, traffic),
         {layout.ep, sent, 0});
    if (layout.tp > 1) {
      const double own = 2 * b / layout.tp * m.hidden;
      sink(Op::TensorParallel,
           Pass::Forward,
           m.moe_layers,
           all_gather_seconds(fabric, tensor, own),
           {layout.tp, own, 0});
    }
  }
}

/// Requires: `m` made for the layout's tp and ep.
template <class Sink>
void visit_parallel_decode(const Device& d,
                           const Fabric& fabric,
                           const StepModel& m,
                           const RolloutLayout& layout,
                           const ReplicaShape& s,
                           Sink& sink) {
  const double b = s.padded;
  visit_layers(d, m, {b, b * layout.dp, m.experts, true}, Pass::Forward, sink);
  const double attention =
      m.latent ? latent_decode_seconds(d, m.attention.heads, m.kv_rank, m.rope, s.batch, s.context)
               : attention_decode_seconds(d, m.attention, s.batch, s.context);
  sink(Op::Attention,
       Pass::Forward,
       m.layers,
       attention,
       {s.batch, s.context, m.attention.kv_heads});
  visit_rollout_exchanges(fabric, m, layout, b, sink);
  detail::visit_gemm(d, Op::Head, Pass::Forward, 1, {b, m.vocabulary, m.hidden}, sink);
  const double bytes = b * m.vocabulary * d.k.sampling_bytes;
  sink(Op::Sampling,
       Pass::Forward,
       1,
       elementwise_seconds(d, kSamplingKernels, bytes),
       {kSamplingKernels, bytes, 0});
}

inline double parallel_decode_seconds(const Device& d,
                                      const Fabric& fabric,
                                      const StepModel& m,
                                      const RolloutLayout& layout,
                                      const ReplicaShape& shape) {
  SumSink sum;
  visit_parallel_decode(d, fabric, m, layout, shape, sum);
  return sum.seconds;
}

}  // namespace temper::sim_hw
