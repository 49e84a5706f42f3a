// One device (a die) as the cost functions see it: data-sheet peaks times fitted shares, all
// doubles in SI units, so that a cost is a handful of multiplications. Made once from a
// HardwareSpec.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"

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

}  // namespace temper::sim_hw
