#include "sim_hw/parallel/activation_choice.hpp"

#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/operators/operators.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace temper::sim_hw {
namespace {

double seconds_of(const StepInputs& in, const SavedTensor& tensor) {
  const double elements = in.tokens() * tensor_bytes_per_token(tensor, in.layout, in.shape) /
                          tensor.bytes;  // On this device.
  switch (tensor.recompute_operator) {
    case RecomputeOperator::Elementwise:
      return elementwise_seconds(in.device, 1, elements * 2 * (tensor.inner + 1));
    case RecomputeOperator::Projection: {
      const bool rows_cut = tensor.cut == TensorSplit::Sequence;
      return gemm_seconds(in.device,
                          Heat::Sustained,
                          in.tokens() / (rows_cut ? in.sequence_cut() : 1),
                          tensor.width / (rows_cut ? 1 : in.tp()),
                          tensor.inner);
    }
    case RecomputeOperator::Experts:
      return gemm_latency(in.device, tensor.inner) +
             2 * elements * tensor.inner * in.device.grouped_cost;
    case RecomputeOperator::Attention:
      return attention_prefill_seconds(in.device,
                                       attention_shape(in),
                                       as_double(in.shape.micro_batch),
                                       as_double(in.shape.seq)) /
             as_double(in.layout.cp);
    case RecomputeOperator::Never:
      break;
  }
  return 0;
}

/// Calls f(tensor) for each tensor in the bit set `which`.
template <class F>
void for_each(const StepInputs& in, LayerKind kind, std::uint32_t which, const F& f) {
  const SavedTensors saved = saved_tensors(in.model, in.shape, kind);
  const std::span<const SavedTensor> all = saved.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((which >> i & 1) != 0)
      f(all[i]);
  }
}

TensorFates& fates_of(TrainShape& shape, LayerKind kind) {
  return kind == LayerKind::Experts ? shape.activations.experts : shape.activations.dense;
}

/// One more dropped tensor, with its gain and cost.
struct Candidate {
  TrainShape shape;
  double bytes = 0;    ///< Freed per layer.
  double seconds = 0;  ///< Lost per layer.

  bool better_than(const Candidate& other) const {
    const double mine = bytes * std::max(other.seconds, 0.0);
    const double theirs = other.bytes * std::max(seconds, 0.0);
    return mine != theirs ? mine > theirs : bytes > other.bytes;
  }
};

std::optional<Candidate> best_candidate(const StepInputs& in,
                                        const MemoryLimits& limits,
                                        ActivationPolicy policy) {
  std::optional<Candidate> best;
  for (const LayerKind kind : {LayerKind::Dense, LayerKind::Experts}) {
    if (kind == LayerKind::Experts ? !in.model.moe : in.model.dense_layers() == 0)
      continue;
    const SavedTensors saved = saved_tensors(in.model, in.shape, kind);
    const double before = layer_cost(in, kind).time.total();
    for (std::size_t i = 0; i < saved.all().size(); ++i) {
      const std::uint32_t bit = std::uint32_t{1} << i;
      for (const bool swap : {false, true}) {
        if (policy == (swap ? ActivationPolicy::Selective : ActivationPolicy::Swap))
          continue;
        Candidate next{in.shape, saved_bytes(in, kind, bit), 0};
        TensorFates& fates = fates_of(next.shape, kind);
        if (((fates.recomputed | fates.swapped) & bit) != 0 ||
            (!swap && saved.all()[i].recompute_operator == RecomputeOperator::Never))
          continue;
        (swap ? fates.swapped : fates.recomputed) |= bit;
        const StepInputs changed{in.model, in.device, in.fabric, in.layout, next.shape};
        if (swap && swapped_bytes(changed) > limits.host)
          continue;
        next.seconds = layer_cost(changed, kind).time.total() - before;
        if (!best || next.better_than(*best))
          best = next;
      }
    }
  }
  return best;
}

}  // namespace

double recompute_seconds(const StepInputs& in, LayerKind kind, std::uint32_t which) {
  double sum = 0;
  for_each(in, kind, which, [&](const SavedTensor& tensor) { sum += seconds_of(in, tensor); });
  return sum;
}

double saved_bytes(const StepInputs& in, LayerKind kind, std::uint32_t which) {
  double sum = 0;
  for_each(in, kind, which, [&](const SavedTensor& tensor) {
    sum += in.tokens() * tensor_bytes_per_token(tensor, in.layout, in.shape);
  });
  return sum;
}

MemoryLimits memory_limits(const HardwareSpec& hardware) {
  return {as_double(hardware.die.memory.count()),
          as_double(hardware.host.memory.count()) / as_double(hardware.devices_per_node())};
}

double swapped_bytes(const StepInputs& in) {
  const TensorFates& dense = in.shape.activations.dense;
  const TensorFates& experts = in.shape.activations.experts;
  double layer = saved_bytes(in, LayerKind::Dense, dense.swapped);
  if (in.model.moe)
    layer = std::max(layer, saved_bytes(in, LayerKind::Experts, experts.swapped));
  return layer * layers_in_flight(in.model, in.layout, in.shape, 0);
}

double swap_traffic(const StepInputs& in) {
  const auto [dense, experts] = in.shape.activations;
  const double routed = in.model.moe ? as_double(in.model.moe_layers() + in.model.mtp_layers) : 0;
  const double plain = as_double(in.model.layers + in.model.mtp_layers) - routed;
  double bytes = plain * saved_bytes(in, LayerKind::Dense, dense.swapped);
  if (routed > 0)
    bytes += routed * saved_bytes(in, LayerKind::Experts, experts.swapped);
  return bytes / as_double(in.layout.pp);
}

double attention_passes(const StepInputs& in) {
  if (in.shape.recompute == Recompute::Full)
    return 2;
  const auto again = [&](LayerKind kind, std::uint32_t recomputed) {
    double passes = 0;
    for_each(in, kind, recomputed, [&](const SavedTensor& tensor) {
      if (tensor.recompute_operator == RecomputeOperator::Attention)
        passes = 1;
    });
    return passes;
  };
  const auto [dense, experts] = in.shape.activations;
  const double routed = in.model.moe ? as_double(in.model.moe_layers()) : 0;
  const double plain = as_double(in.model.layers) - routed;
  double passes = plain * again(LayerKind::Dense, dense.recomputed);
  if (routed > 0)
    passes += routed * again(LayerKind::Experts, experts.recomputed);
  return 1 + passes / as_double(in.model.layers);
}

std::optional<ActivationPlan> choose_activations(const StepInputs& in,
                                                 const MemoryLimits& limits,
                                                 ActivationPolicy policy) {
  TrainShape shape = in.shape;
  while (worst_train_ledger(in.model, in.layout, shape).total() > limits.device) {
    const StepInputs now{in.model, in.device, in.fabric, in.layout, shape};
    const std::optional<Candidate> next = best_candidate(now, limits, policy);
    if (!next)
      return std::nullopt;
    shape = next->shape;
  }
  return shape.activations;
}

TrainShape with_activations(const StepInputs& in,
                            const MemoryLimits& limits,
                            ActivationPolicy policy) {
  TrainShape shape = in.shape;
  shape.recompute = Recompute::Full;
  shape.activations = {};
  if (policy == ActivationPolicy::Full)
    return shape;
  TrainShape chosen = shape;
  chosen.recompute = Recompute::None;
  const StepInputs choice{in.model, in.device, in.fabric, in.layout, chosen};
  const std::optional<ActivationPlan> plan = choose_activations(choice, limits, policy);
  if (plan)
    chosen.activations = *plan;
  if (policy != ActivationPolicy::Auto)
    return chosen;
  const double routed = in.model.moe ? as_double(in.model.moe_layers()) : 0;
  const double plain = as_double(in.model.layers) - routed;
  const auto seconds = [&](const TrainShape& of) {
    const StepInputs under{in.model, in.device, in.fabric, in.layout, of};
    double sum = 0;
    if (plain > 0)
      sum += plain * layer_cost(under, LayerKind::Dense).time.total();
    if (routed > 0)
      sum += routed * layer_cost(under, LayerKind::Experts).time.total();
    return sum;
  };
  return plan && seconds(chosen) <= seconds(shape) ? chosen : shape;
}

}  // namespace temper::sim_hw
