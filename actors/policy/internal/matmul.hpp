// Single-precision matrix products over row-major arrays, by oneDNN (which libtorch itself depends
// on). Called directly because at the sizes of a small policy the dispatch around a product costs
// as much as the product, and because the BLAS that Debian installs with libtorch by default is the
// unoptimised reference, 30 times slower. Threads: those of OpenMP.
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
/// dx[rows, in] = dy[rows, out] * w[out, in]: its gradient by the input.
void matmul_nn(const float* dy,
               const float* w,
               float* dx,
               std::int64_t rows,
               std::int64_t out,
               std::int64_t in);
/// dw[out, in] = dy[rows, out]^T * x[rows, in]: its gradient by the weight.
void matmul_tn(const float* dy,
               const float* x,
               float* dw,
               std::int64_t rows,
               std::int64_t out,
               std::int64_t in);

}  // namespace temper::actors
