// What the network costs and what this machine gives: the two sides of every efficiency figure.
#pragma once

#include "actors/model_folder/layout.hpp"

namespace temper::actors {

/// Floating-point operations of one token's forward pass that sees `keys` positions: 2 per weight
/// of each matrix it meets (the head included, the embedding not), 4 per element of a query head
/// and key.
Flops forward_flops(const Layout& layout, double keys);

/// Rate of a large square single-precision matrix product with the threads in use: the best of
/// `repeats`. Takes about 10 ms a repeat.
FlopsPerSecond measure_gemm_rate(std::int32_t repeats = 20);

}  // namespace temper::actors
