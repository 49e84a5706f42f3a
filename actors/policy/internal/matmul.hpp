// Single-precision matrix products of row-major arrays with oneDNN (on which libtorch depends).
// Called directly because for a small policy libtorch's dispatch costs as much as the product, and
// because the BLAS that Debian installs with libtorch by default is the unoptimized reference, 30
// times slower. Uses OpenMP threads.
//
// x: inputs, w: weights, y: outputs, dx, dw, dy: gradients with respect to them. Arrays are
// borrowed for the call, must not be null, and the result must not overlap an operand.
#pragma once

#include <cstdint>

namespace temper::actors {

enum class Accumulate { No, Yes };

/// y[rows, out] (+)= x[rows, in] * w[out, in]^T: a linear layer.
void matmul_nt(const float* x,
               const float* w,
               float* y,
               std::int64_t rows,
               std::int64_t in,
               std::int64_t out,
               Accumulate accumulate = Accumulate::No);
/// dx[rows, in] = dy[rows, out] * w[out, in]: gradient with respect to the input.
void matmul_nn(const float* dy,
               const float* w,
               float* dx,
               std::int64_t rows,
               std::int64_t out,
               std::int64_t in);
/// dw[out, in] (+)= dy[rows, out]^T * x[rows, in]: gradient with respect to the weight.
void matmul_tn(const float* dy,
               const float* x,
               float* dw,
               std::int64_t rows,
               std::int64_t out,
               std::int64_t in,
               Accumulate accumulate = Accumulate::No);

}  // namespace temper::actors
