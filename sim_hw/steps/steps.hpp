// Cost of a step of a whole model on one device: decode, prefill, log-prob pass, training step.
//
//   time = max(sum of the device's operators, host launch time)
// Host: an eager step launches kernels one by one (host_kernel each; host_train_kernel if autograd
// records); a captured graph launches once. Decode is affine in the batch because its operators
// are: weights are read once; keys, values and logits once per sequence.
//
// Assumed: with random weights one sequence reaches only `sequence_expert_share` of the experts
// (prefill, log-probs); decoding sequences are independent. The log-prob head works in chunks of
// 4096 tokens and is always recomputed in training. The host's kernels per layer are counts of the
// measured engine: 20 forward, 40 backward, 29 for a checkpointed recomputation (which also saves
// and restores the random state), 2 more for norms of queries and keys, 40 more with routed experts
// when decoding (only there: the one measured prefill of 512 tokens leaves no time for them, for
// unknown reasons). Range: the validation report of the hardware model.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/memory/torch_training.hpp"
#include "sim_hw/steps/layers.hpp"

namespace temper::sim_hw {

enum class Launch { Graph, Eager };

struct DecodeShape {
  double batch = 1;    ///< Sequences.
  double context = 1;  ///< Cached tokens per sequence.
  Launch launch = Launch::Graph;
};

struct PassShape {
  double batch = 1;
  double seq = 1;
};

inline constexpr double kForwardKernels = 20;
inline constexpr double kBackwardKernels = 40;
inline constexpr double kRecomputeKernels = 29;
inline constexpr double kRoutingKernels = 40;
inline constexpr double kSamplingKernels = 8;
inline constexpr double kLogSoftmaxKernels = 6;

template <class Sink>
void visit_decode(const Device& d, const StepModel& m, double batch, double context, Sink& sink) {
  visit_layers(d, m, {batch, batch, m.experts, true}, Pass::Forward, sink);
  const double attention =
      m.latent ? latent_decode_seconds(d, m.attention.heads, m.kv_rank, m.rope, batch, context)
               : attention_decode_seconds(d, m.attention, batch, context);
  sink(Op::Attention, Pass::Forward, m.layers, attention, {batch, context, m.attention.kv_heads});
  detail::visit_gemm(d, Op::Head, Pass::Forward, 1, {batch, m.vocabulary, m.hidden}, sink);
  const double bytes = batch * m.vocabulary * d.k.sampling_bytes;
  sink(Op::Sampling,
       Pass::Forward,
       1,
       elementwise_seconds(d, kSamplingKernels, bytes),
       {kSamplingKernels, bytes, 0});
}

/// Norms of queries and of keys are separate kernels.
inline double forward_kernels(const StepModel& m) {
  return kForwardKernels + (m.qk_norm ? 2 : 0);
}

/// Host seconds of one eager decode step.
inline double decode_host_seconds(const Device& d, const StepModel& m) {
  return d.k.host_step +
         d.k.host_kernel * (m.layers * forward_kernels(m) + m.moe_layers * kRoutingKernels);
}
inline double forward_host_seconds(const Device& d, const StepModel& m) {
  return d.k.host_step + d.k.host_kernel * m.layers * forward_kernels(m);
}

inline double decode_seconds(const Device& d, const StepModel& m, const DecodeShape& s) {
  SumSink sum;
  visit_decode(d, m, s.batch, s.context, sum);
  return s.launch == Launch::Graph ? sum.seconds : std::max(sum.seconds, decode_host_seconds(d, m));
}

/// Experts that the tokens of `batch` sequences reach.
inline double reachable_experts(const Device& d, const StepModel& m, double batch) {
  return m.experts * (1 - std::pow(1 - d.k.sequence_expert_share, batch));
}

template <class Sink>
void visit_trunk(const Device& d, const StepModel& m, const PassShape& s, Pass pass, Sink& sink) {
  const double tokens = s.batch * s.seq;
  const double experts = m.moe_layers > 0 ? reachable_experts(d, m, s.batch) : 0;
  visit_layers(d, m, {tokens, tokens, experts, false}, pass, sink);
  visit_attention(d, m, s.batch, s.seq, pass, sink);
}

/// Computes logits for the last token of each sequence.
template <class Sink>
void visit_prefill(const Device& d, const StepModel& m, const PassShape& s, Sink& sink) {
  visit_trunk(d, m, s, Pass::Forward, sink);
  detail::visit_gemm(d, Op::Head, Pass::Forward, 1, {s.batch, m.vocabulary, m.hidden}, sink);
}

inline double prefill_seconds(const Device& d, const StepModel& m, const PassShape& s) {
  SumSink sum;
  visit_prefill(d, m, s, sum);
  return std::max(sum.seconds, forward_host_seconds(d, m));
}

/// Head and log-softmax of `tokens` tokens, in chunks.
template <class Sink>
void visit_logprob_head(const Device& d, const StepModel& m, double tokens, Pass pass, Sink& sink) {
  const double chunk = std::min(tokens, kHeadChunk);
  const double chunks = tokens / chunk;
  const double bytes = chunk * m.vocabulary * d.k.log_softmax_bytes;
  detail::visit_gemm(d, Op::Head, pass, chunks, {chunk, m.vocabulary, m.hidden}, sink);
  sink(Op::LogSoftmax,
       pass,
       chunks,
       elementwise_seconds(d, kLogSoftmaxKernels, bytes),
       {kLogSoftmaxKernels, bytes, 0});
  // The gradient of the head's weights is summed over the chunks: two reads and a write.
  if (pass == Pass::Backward) {
    const double sum = 6 * m.vocabulary * m.hidden;
    sink(Op::HeadGradient, pass, chunks, elementwise_seconds(d, 1, sum), {1, sum, 0});
  }
}

inline double logprob_seconds(const Device& d, const StepModel& m, const PassShape& s) {
  SumSink trunk;
  visit_trunk(d, m, s, Pass::Forward, trunk);
  SumSink head;
  visit_logprob_head(d, m, s.batch * s.seq, Pass::Forward, head);
  return std::max(trunk.seconds, forward_host_seconds(d, m)) + head.seconds;
}

template <class Sink>
void visit_forward_backward(
    const Device& d, const StepModel& m, const PassShape& s, Recompute recompute, Sink& sink) {
  visit_trunk(d, m, s, Pass::Forward, sink);
  if (recompute == Recompute::Full)
    visit_trunk(d, m, s, Pass::Recompute, sink);
  visit_trunk(d, m, s, Pass::Backward, sink);
  const double tokens = s.batch * s.seq;
  visit_logprob_head(d, m, tokens, Pass::Forward, sink);
  visit_logprob_head(d, m, tokens, Pass::Recompute, sink);
  visit_logprob_head(d, m, tokens, Pass::Backward, sink);
}

inline double train_host_seconds(const Device& d, const StepModel& m, Recompute recompute) {
  return d.k.host_train_kernel * m.layers *
         (kForwardKernels + kBackwardKernels +
          (recompute == Recompute::Full ? kRecomputeKernels : 0));
}

inline double forward_backward_seconds(const Device& d,
                                       const StepModel& m,
                                       const PassShape& s,
                                       Recompute recompute) {
  SumSink sum;
  visit_forward_backward(d, m, s, recompute, sum);
  return std::max(sum.seconds, train_host_seconds(d, m, recompute));
}

/// AdamW with states in bf16.
inline double optimizer_seconds(const Device& d, double parameters) {
  return d.k.optimizer_latency + parameters * d.k.optimizer_bytes / d.bandwidth;
}

/// Copies weights tensor by tensor inside device memory: one kernel for each of the 12 tensors of a
/// layer in a published checkpoint; every byte is read and written.
inline constexpr double kTensorsPerLayer = 12;
inline double weight_copy_seconds(const Device& d, const StepModel& m) {
  return m.layers * kTensorsPerLayer * d.k.kernel_latency + 2 * 2 * m.parameters / d.copy_bandwidth;
}

}  // namespace temper::sim_hw
