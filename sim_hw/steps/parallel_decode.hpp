// One decode step of an engine on many devices: tensor parallelism inside a replica, data
// parallelism over replicas, experts over all devices.
//
// Each replica (tp devices) decodes `batch` sequences. Per layer and device:
//   attention of the batch with heads / tp, then an all-reduce over tp (batch x hidden)
//   batch / tp tokens are dispatched to experts over ep devices with experts / ep each; batch dp
//   tokens of all replicas together may reach them; combine, then an all-gather over tp
// The cost is the device's operators plus the communication, all of it exposed: a decode step has
// nothing to hide it behind. With one padded graph every operator except the core of attention runs
// at the graph's batch.
//
// With an expert imbalance i, the busiest device computes and receives i times the mean copies, and
// all others wait for it. Assumed: bf16 exchanges; the vocabulary split over tp.
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
  double expert_imbalance = 1;  ///< Copies of the busiest expert device over the mean.
  std::int64_t redundant_experts = 0;
};

struct ReplicaShape {
  double batch = 1;    ///< Sequences per replica.
  double padded = 1;   ///< Batch of the captured graph; `batch` with one graph per shape.
  double context = 1;  ///< Cached tokens per sequence.
  double queries = 1;  ///< Tokens of each sequence in the step: 1 + the drafts that it verifies.
};

/// One operation that the devices of a layout do together, `count` times.
struct RolloutExchange {
  enum class Kind { AllReduce, AllGather, Dispatch, Combine } kind = Kind::AllReduce;
  double count = 0;
  Group group;
  double bytes = 0;    ///< Per rank.
  MoeTraffic traffic;  ///< For dispatch and combine.

  double seconds(const Fabric& fabric) const {
    switch (kind) {
      case Kind::AllReduce:
        return all_reduce_seconds(fabric, group, bytes);
      case Kind::AllGather:
        return all_gather_seconds(fabric, group, bytes);
      case Kind::Dispatch:
        return moe_dispatch_seconds(fabric, group, traffic);
      case Kind::Combine:
        break;
    }
    return moe_combine_seconds(fabric, group, traffic);
  }
  /// Bytes sent by each device per operation.
  LevelBytes sent(const Fabric& fabric) const {
    switch (kind) {
      case Kind::AllReduce:
        return all_reduce_traffic(fabric, group, bytes);
      case Kind::AllGather:
        return all_gather_traffic(fabric, group, bytes);
      case Kind::Dispatch:
      case Kind::Combine:
        break;
    }
    return moe_traffic(fabric, group, traffic);
  }
  Op op() const {
    switch (kind) {
      case Kind::AllReduce:
      case Kind::AllGather:
        return Op::TensorParallel;
      case Kind::Dispatch:
        return Op::Dispatch;
      case Kind::Combine:
        break;
    }
    return Op::Combine;
  }
};

/// Exchanges of the layout's devices in all layers for `b` tokens per replica.
template <class Use>
void for_each_rollout_exchange(const StepModel& m,
                               const RolloutLayout& layout,
                               double b,
                               Use&& use) {
  using K = RolloutExchange::Kind;
  const Group tensor{static_cast<std::int64_t>(layout.tp), 1};
  if (layout.tp > 1)
    use(RolloutExchange{K::AllReduce, m.layers + m.dense_layers, tensor, 2 * b * m.hidden, {}});
  if (m.moe_layers > 0 && layout.ep > 1) {
    const Group experts{static_cast<std::int64_t>(layout.ep), 1};
    const MoeTraffic traffic{b / layout.tp * layout.expert_imbalance, m.top_k, 2 * m.hidden};
    const double sent = traffic.tokens_per_rank * m.top_k * traffic.bytes_per_token;
    use(RolloutExchange{K::Dispatch, m.moe_layers, experts, sent, traffic});
    use(RolloutExchange{K::Combine, m.moe_layers, experts, sent, traffic});
    if (layout.tp > 1)
      use(RolloutExchange{K::AllGather, m.moe_layers, tensor, 2 * b / layout.tp * m.hidden, {}});
  }
}

template <class Sink>
void visit_rollout_exchanges(
    const Fabric& fabric, const StepModel& m, const RolloutLayout& layout, double b, Sink& sink) {
  for_each_rollout_exchange(m, layout, b, [&](const RolloutExchange& e) {
    sink(e.op(),
         Pass::Forward,
         e.count,
         e.seconds(fabric),
         {static_cast<double>(e.group.ranks), e.bytes, 0});
  });
}

/// Bytes that each device sends in these exchanges, on average over the devices.
inline LevelBytes rollout_traffic(const Fabric& fabric,
                                  const StepModel& m,
                                  RolloutLayout layout,
                                  double b) {
  layout.expert_imbalance = 1;
  LevelBytes out;
  for_each_rollout_exchange(
      m, layout, b, [&](const RolloutExchange& e) { out.add(e.sent(fabric), e.count); });
  return out;
}

/// The core of attention in one layer. With selected tokens, an index first reads one key of every
/// cached token and scores it with each of its heads.
inline double rollout_attention_seconds(const Device& d,
                                        const StepModel& m,
                                        const ReplicaShape& s) {
  const double attended = m.sparse_tokens > 0 ? std::min(s.context, m.sparse_tokens) : s.context;
  double seconds = m.latent
                       ? latent_decode_seconds(
                             d, m.attention.heads * s.queries, m.kv_rank, m.rope, s.batch, attended)
                       : attention_verify_seconds(d, m.attention, s.batch, attended, s.queries);
  if (m.sparse_tokens > 0) {
    const double keys = s.batch * s.context;
    const double products = 2 * keys * s.queries * m.index_heads * m.index_dim;
    seconds += d.k.attention_decode_latency +
               smooth_max4(keys * m.index_dim / d.decode_bandwidth, products * d.attention_cost);
  }
  return seconds;
}

/// Requires: `m` is made for the layout's tp and ep.
template <class Sink>
void visit_parallel_decode(const Device& d,
                           const Fabric& fabric,
                           const StepModel& m,
                           const RolloutLayout& layout,
                           const ReplicaShape& s,
                           Sink& sink) {
  const double b = s.padded * s.queries;
  visit_layers(
      d, m, {b, b * layout.dp * layout.expert_imbalance, m.experts, true}, Pass::Forward, sink);
  const double attention = rollout_attention_seconds(d, m, s);
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
