// One device (a die) for the cost functions: data-sheet peaks times fitted shares, as doubles in SI
// units, so that a cost is a few multiplications. Computed once from a HardwareSpec.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/operators/formats.hpp"

namespace temper::sim_hw {

struct Device {
  OperatorConstants k;
  double matrix_peak = 0;     ///< FLOP/s, dense BF16.
  double memory_peak = 0;     ///< B/s.
  double bandwidth = 0;       ///< B/s of streaming kernels.
  double copy_bandwidth = 0;  ///< B/s, read plus write.
  double boost_cost = 0;      ///< s/FLOP of a short GEMM.
  double sustained_cost = 0;  ///< s/FLOP under the power limit.
  double attention_cost = 0;  ///< s/FLOP of attention's products.
  double decode_bandwidth = 0;
  double grouped_bandwidth = 0;
  double grouped_cost = 0;  ///< s/FLOP.
  double memory = 0;        ///< Bytes of HBM.
  MatrixFormat linear;      ///< Of the projections and MLPs; heads and routers stay in BF16.
  MatrixFormat experts;     ///< Of routed experts.
  double kv_bytes = 2;      ///< Per element of the cached keys and values.
  double vector_passes =
      1;  ///< Launches and memory passes of elementwise kernels, relative to fused ones.
};

inline Device make_device(const HardwareSpec& spec) {
  Device d;
  d.k = spec.constants.operators;
  d.matrix_peak = spec.die.bf16.count();
  d.memory_peak = spec.die.memory_bandwidth.count();
  d.bandwidth = d.k.memory_efficiency * d.memory_peak;
  d.copy_bandwidth = d.k.copy_efficiency * d.memory_peak;
  d.boost_cost = 1 / (d.k.matmul_boost * d.matrix_peak);
  d.sustained_cost = 1 / (d.k.matmul_sustained * d.matrix_peak);
  d.attention_cost = 1 / (d.k.attention_rate * d.matrix_peak);
  d.decode_bandwidth = d.k.attention_decode_efficiency * d.memory_peak;
  d.grouped_bandwidth = d.k.grouped_bandwidth * d.memory_peak;
  d.grouped_cost = 1 / (d.k.grouped_rate * d.matrix_peak);
  d.memory = static_cast<double>(spec.die.memory.count());
  return d;
}

/// As an engine with these formats uses it.
inline Device make_device(const HardwareSpec& spec, const EngineFormats& formats) {
  Device d = make_device(spec);
  d.experts = matrix_format(formats.weights, spec.die);
  if (!formats.experts_only)
    d.linear = d.experts;
  d.kv_bytes = cache_bytes(formats.cache);
  return d;
}

/// The device before kernel acceleration. Huawei reports each gain separately: attention +50 %
/// forward and +30 % backward (redundant work and data movement removed, cube and vector units
/// pipelined), matrix products +10 % of the cube (two-level data movement), vector operators 3
/// times as fast (small ones fused, which saves launches and memory passes). Sort and combine of
/// routed tokens are unchanged.
inline Device plain_kernels(Device d) {
  constexpr double kAttentionForward = 1.5;
  constexpr double kAttentionBackward = 1.3;
  constexpr double kMatrix = 1.1;
  constexpr double kVector = 3;
  d.attention_cost *= kAttentionForward;
  d.k.attention_softmax *= kAttentionForward;
  d.k.attention_backward *= kAttentionBackward / kAttentionForward;
  d.boost_cost *= kMatrix;
  d.sustained_cost *= kMatrix;
  d.grouped_cost *= kMatrix;
  d.vector_passes *= kVector;
  return d;
}

}  // namespace temper::sim_hw
