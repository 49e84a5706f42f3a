// Cost of the network and speed of this machine, for efficiency figures.
#pragma once

#include "actors/model_folder/layout.hpp"

namespace temper::actors {

/// Floating-point operations of one token's forward pass that attends to `keys` positions: 2 per
/// weight of each matrix used (including the head, excluding the embedding), 4 per element of a
/// query head and key.
Flops forward_flops(const Layout& layout, double keys);

/// Rate of a large square matrix product with the current number of threads: the best of `repeats`,
/// each of which takes about 10 ms.
FlopsPerSecond measure_gemm_rate(std::int32_t repeats = 20,
                                 ComputeType type = ComputeType::Float32);

}  // namespace temper::actors
