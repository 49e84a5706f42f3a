// Matrix products of row-major arrays with oneDNN (on which libtorch depends). Called directly
// because for a small policy libtorch's dispatch costs as much as the product, and because the BLAS
// that Debian installs with libtorch by default is the unoptimized reference, 30 times slower. Uses
// OpenMP threads.
//
// x: inputs, w: weights, y: outputs, dx, dw, dy: gradients with respect to them. Arrays are
// borrowed for the call, must not be null, and the result must not overlap an operand. Operands are
// float or Bfloat16; sums and results are float32.
#pragma once

#include "actors/model_folder/bfloat16.hpp"

#include <cstdint>

namespace temper::actors {

enum class Accumulate { No, Yes };

/// c[m, n] (+)= alpha * op(a)[m, k] * op(b)[k, n]; `transa` and `transb` are 'N' or 'T', `lda`,
/// `ldb` and `ldc` the lengths of stored rows.
struct Product {
  char transa = 'N', transb = 'N';
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0;
  Accumulate accumulate = Accumulate::No;
  std::int64_t ldc = n;
  float alpha = 1;
};
void multiply(const Product& product, const float* a, const float* b, float* c);
void multiply(const Product& product, const Bfloat16* a, const Bfloat16* b, float* c);

/// y[rows, out] (+)= x[rows, in] * w[out, in]^T: a linear layer.
template <class Operand>
void matmul_nt(const Operand* x,
               const Operand* w,
               float* y,
               std::int64_t rows,
               std::int64_t in,
               std::int64_t out,
               Accumulate accumulate = Accumulate::No) {
  multiply({'N', 'T', rows, out, in, in, in, accumulate}, x, w, y);
}
/// dx[rows, in] = dy[rows, out] * w[out, in]: gradient with respect to the input.
template <class Operand>
void matmul_nn(const Operand* dy,
               const Operand* w,
               float* dx,
               std::int64_t rows,
               std::int64_t out,
               std::int64_t in) {
  multiply({'N', 'N', rows, in, out, out, in, Accumulate::No}, dy, w, dx);
}
/// dw[out, in] (+)= dy[rows, out]^T * x[rows, in]: gradient with respect to the weight.
template <class Operand>
void matmul_tn(const Operand* dy,
               const Operand* x,
               float* dw,
               std::int64_t rows,
               std::int64_t out,
               std::int64_t in,
               Accumulate accumulate = Accumulate::No) {
  multiply({'T', 'N', out, in, rows, out, in, accumulate}, dy, x, dw);
}

}  // namespace temper::actors
